"""Small trees written by hand, as gold documents."""

from __future__ import annotations

from corpora.document import Document, Spans, Tokens

UPOS_OF = {"V": "VERB", "X": "AUX", "N": "NOUN", "P": "PRON", "A": "ADJ", "R": "ADV"}


def document(*sentences: str, text: str | None = None, name: str = "d") -> Document:
    """A gold document from sentences such as `He/P/nsubj/2 left/V!/root/0 ././punct/2`.

    Each word is `form/tag/label/head`; a tag is an entry of `UPOS_OF` or a UPOS, `!` marks it as
    finite, `=VB` adds an XPOS. Words are parted by blanks in the text.
    """
    tokens, spans = Tokens(), Spans()
    position = 0
    for sentence in sentences:
        base, begin = len(tokens), position
        for word in sentence.split():
            form, tag, label, head = word.rsplit("/", 3)
            tokens.form.append(form)
            tokens.start.append(position)
            tokens.end.append(position + len(form))
            position += len(form) + 1
            upos, _, xpos = tag.rstrip("!").partition("=")
            tokens.upos.append(UPOS_OF.get(upos, upos))
            tokens.xpos.append(xpos)
            tokens.feats.append("VerbForm=Fin" if tag.endswith("!") else "")
            tokens.deprel.append(label)
            tokens.head.append(base + int(head) - 1 if head != "0" else -1)
        tokens.offsets.append(len(tokens))
        spans.add(begin, position - 1)
    whole = " ".join(tokens.form) if text is None else text
    return Document(id=name, text=whole, tokens=tokens, sentences=spans)
