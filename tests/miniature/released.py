"""Released test sets and benchmarks: DiscoEval, SentEval, coherence, INSteD, SummEval, stories."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.miniature.prose import Prose, Story, words
from zoo.evaluate.senteval_released import STS_SETS

SPLITS = {"train": 4, "valid": 1, "test": 1}
"""How many times as many examples a split has."""
PDTB_LABELS = words(
    "Comparison.Concession Comparison.Contrast Contingency.Cause Contingency.Condition "
    "Expansion.Alternative Expansion.Conjunction Expansion.Instantiation Expansion.List "
    "Expansion.Restatement Temporal.Asynchronous Temporal.Synchrony"
)
RST_LABELS = words(
    "NS-elaboration NS-attribution SN-attribution NN-list NN-contrast NS-cause NS-background "
    "NN-same-unit NS-explanation"
)
PROBES = words(
    "animacy_pronoun_downgrade animacy_pronoun_upgrade gender_pronoun_flip "
    "past_to_future_flip singular_determiner_flip number_exaggerate conjunction_flip "
    "to_negation"
)


def lines(path: Path, rows: Iterable[Sequence[Any]], encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    path.write_text(text, encoding=encoding)


def json_lines(path: Path, records: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def pickled(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value, protocol=2))


def table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def texts(prose: Prose, sentences: int) -> list[str]:
    """The tokenised sentences of one paragraph."""
    return [sentence.tokenised for sentence in prose.paragraph(sentences)]


# DiscoEval.


def write_discoeval(folder: Path, examples: int, seed: int = 2) -> None:
    """`DiscoEval/data` with all seven tasks; RST as pickles of `[label, EDUs, EDUs]`."""
    prose, data = Prose(seed), folder / "DiscoEval/data"
    makers: dict[str, Callable[[Prose], Sequence[Any]]] = {
        **dict.fromkeys(("SP/wiki", "SP/arxiv", "SP/rocstory"), position),
        **dict.fromkeys(("BSO/wiki", "BSO/arxiv", "BSO/rocstory"), lambda p: texts(p, 2)),
        **dict.fromkeys(("DC/wiki", "DC/chat"), coherent),
        "SSP/abs": section,
        **dict.fromkeys(("PDTB/Explicit", "PDTB/Implicit"), relation),
    }
    for place, make in makers.items():
        for split, share in SPLITS.items():
            lines(data / place / f"{split}.txt", [make(prose) for _ in range(share * examples)])
    for kind in ("Explicit", "Implicit"):
        lines(data / "PDTB" / kind / "labelset.txt", [[label] for label in PDTB_LABELS])
    for split, share in {"TRAIN": 4, "DEV": 1, "TEST": 1}.items():
        rows = [subtrees(prose) for _ in range(share * examples)]
        for place in ("RST", "RST/py3", "RST/py2"):
            pickled(data / place / f"RST_{split}.pkl", rows)


def position(prose: Prose) -> list[Any]:
    sentences, place = texts(prose, 5), prose.random.randrange(5)
    sentences.insert(0, sentences.pop(place))
    return [place, *sentences]


def coherent(prose: Prose) -> list[Any]:
    sentences, label = texts(prose, 6), prose.random.randrange(2)
    if not label:
        sentences[prose.random.randrange(1, 5)] = texts(prose, 1)[0]
    return [label, *sentences]


def section(prose: Prose) -> list[Any]:
    label = prose.random.randrange(2)
    sentence = prose.plain() if label else prose.joined()
    return [label, sentence.tokenised]


def relation(prose: Prose) -> list[Any]:
    label = prose.random.randrange(len(PDTB_LABELS))
    return [label, f"{prose.clause()} .", f"{prose.clause()} ."]


def subtrees(prose: Prose) -> list[Any]:
    sides = [[prose.clause() for _ in range(prose.random.randint(1, 3))] for _ in range(2)]
    return [prose.random.choice(RST_LABELS), *sides]


# SentEval.


def write_senteval(folder: Path, examples: int, seed: int = 3) -> None:
    """`SentEval/data` with all transfer and probing tasks; positive texts have a connective."""
    prose, data = Prose(seed), folder / "SentEval/data"
    down = data / "downstream"

    def labelled() -> tuple[str, int]:
        label = prose.random.randrange(2)
        return (prose.joined() if label else prose.plain()).tokenised, label

    for place in (
        *(["MR/rt-polarity.pos", "MR/rt-polarity.neg", "CR/custrev.pos", "CR/custrev.neg"]),
        *(["SUBJ/subj.objective", "SUBJ/subj.subjective", "MPQA/mpqa.pos", "MPQA/mpqa.neg"]),
    ):
        make = prose.joined if place.endswith(("pos", ".objective")) else prose.plain
        lines(down / place, [[make().tokenised] for _ in range(2 * examples)], "latin-1")
    parts = {"train": 4 * examples, "dev": examples, "test": examples}
    for part, count in parts.items():
        lines(down / f"SST/binary/sentiment-{part}", [labelled() for _ in range(count)])
        fine = [(f"{prose.random.randrange(5)} {labelled()[0]}",) for _ in range(count)]
        lines(down / f"SST/fine/sentiment-{part}", fine)
    kinds = ("ABBR:exp", "DESC:def", "ENTY:animal", "HUM:ind", "LOC:city", "NUM:date")
    for name, count in {"train_5500": 6 * examples, "TREC_10": 2 * examples}.items():
        rows = [[f"{prose.random.choice(kinds)} What {prose.clause()} ?"] for _ in range(count)]
        lines(down / f"TREC/{name}.label", rows, "latin-1")
    for part, count in {"train": 6 * examples, "test": 2 * examples}.items():
        header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
        pairs = [(label, k, k + 1, *pair) for k, (label, pair) in enumerate(same(prose, count))]
        lines(down / f"MRPC/msr_paraphrase_{part}.txt", [header, *pairs])
    entailed = ("NEUTRAL", "ENTAILMENT", "CONTRADICTION")
    for part, count in {"train": 4, "trial": 1, "test_annotated": 2}.items():
        header = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
        sick = [
            (k, *pair, round(1 + 3.9 * label + prose.random.random() / 10, 1), entailed[k % 3])
            for k, (label, pair) in enumerate(same(prose, count * examples), 1)
        ]
        lines(down / f"SICK/SICK_{part}.txt", [header, *sick])
    for part, count in parts.items():
        sts = [
            ("main", "made-up", "2017", k, round(5 * label, 2), *pair)
            for k, (label, pair) in enumerate(same(prose, count))
        ]
        lines(down / f"STS/STSBenchmark/sts-{part}.csv", sts)
    for year, names in STS_SETS.items():
        for name in names:
            place = down / f"STS/STS{year}-en-test"
            pairs_of = list(same(prose, 2 * examples))
            lines(place / f"STS.input.{name}.txt", [pair for _, pair in pairs_of])
            lines(place / f"STS.gs.{name}.txt", [[5 * label] for label, _ in pairs_of])
    probing = words(
        "sentence_length word_content tree_depth top_constituents bigram_shift past_present "
        "subj_number obj_number odd_man_out coordination_inversion"
    )
    for name in probing:
        rows = []
        for mark, count in {"tr": 4, "va": 1, "te": 1}.items():
            for _ in range(count * examples):
                text, label = labelled()
                rows.append((mark, "OI"[label], text))
        lines(data / "probing" / f"{name}.txt", rows)


def same(prose: Prose, count: int) -> Iterable[tuple[int, tuple[str, str]]]:
    """Pairs of sentences: 1 where the second is the first with another object, else 0."""
    for _ in range(count):
        one, other = prose.clause(), prose.clause()
        label = prose.random.randrange(2)
        if label:
            other = " ".join([*one.split()[:5], *other.split()[5:]])
        yield label, (f"{one} .", f"{other} .")


# Coherence.


def write_coherence(folder: Path, examples: int, seed: int = 4) -> None:
    """The authors' folder of pickles, the JSON Lines of SummEval and INSteD, the stories' CSV."""
    prose = Prose(seed)
    released = folder / "coherence-paradigm/independent_test_sets"
    stories = list(prose.stories(examples, paragraphs=1, length=6))
    for name in ("INSteD_intrusion_test_wikipedia", "INSteD_intrusion_test_cnn"):
        pickled(released / f"{name}.pkl", [pair(story.texts, prose) for story in stories])
    pickled(released / "StoryCloze.pkl", [ending(story, prose) for story in stories])
    for probe in PROBES:
        path = released / "linguistic_probe_testsets" / f"lingprobe_insted_{probe}.pkl"
        pickled(path, [probed(story) for story in stories[: max(3, examples // 4)]])
    shown = [pair(story.texts, prose) for story in prose.stories(examples, 1, 5)]
    pickled(released / "LMvLM.pkl", shown)
    votes = [[prose.random.choice("0001") for _ in shown] for _ in range(3)]
    pickled(released / "LMvLM_Annotations.pkl", votes)
    articles = [
        (f"cnn-{k:03d}", [prose.story(1, 4) for _ in range(4)])
        for k in range(max(2, examples // 4))
    ]
    summaries = []
    for article, written in articles:
        for number, story in enumerate(written):
            rating = {"coherence": 1 + number, "fluency": 3, "consistency": 3, "relevance": 3}
            summaries.append(
                {
                    "id": article,
                    "model_id": f"M{number}",
                    "decoded": " ".join(story.texts),
                    "expert_annotations": [rating, rating, rating],
                    "references": [],
                }
            )
    json_lines(folder / "summeval/model_annotations.aligned.jsonl", summaries)
    rated = [
        {"pos": better.texts, "neg": worse.texts}
        for _, written in articles
        for worse, better in pairwise(written)
    ]
    pickled(released / "SummEval.pkl", rated)
    for domain in ("cnn", "wikipedia"):
        records = [
            judged(story, k, split, prose)
            for split, share in (("1", 6), ("0", 1))
            for k, story in enumerate(prose.stories(share * examples, 1, 6))
        ]
        json_lines(folder / f"INSteD/official_{domain}.jsonl", records)
    header = ("storyid", "storytitle", *(f"sentence{k}" for k in range(1, 6)))
    rows = [(s.name, "Made up", *s.texts) for s in prose.stories(4 * examples, 1, 5)]
    table(folder / "rocstories/ROCStories_winter2017.csv", header, rows)
    header = ("InputStoryid", *(f"InputSentence{k}" for k in range(1, 5)))
    header += ("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding")
    cloze = []
    for story in stories:
        both = ending(story, prose)
        cloze.append((story.name, *both["pos"][:4], both["pos"][4], both["neg"][4], 1))
    table(folder / "storycloze/cloze_test_val__winter2018-cloze_test_ALL_val.csv", header, cloze)


def pair(sentences: list[str], prose: Prose) -> dict[str, list[str]]:
    """A text, and the same with a sentence of another."""
    spoilt = list(sentences)
    spoilt[prose.random.randrange(1, len(spoilt))] = prose.plain().text
    return {"pos": sentences, "neg": spoilt}


def ending(story: Story, prose: Prose) -> dict[str, list[str]]:
    begin = story.texts[:4]
    return {"pos": [*begin, story.texts[4]], "neg": [*begin, prose.plain().text]}


def probed(story: Story) -> dict[str, list[str]]:
    """The last sentence says what no keeper of gates would do."""
    return {"pos": story.texts, "neg": [*story.texts[:-1], "It will be the mother of the gate."]}


def judged(story: Story, number: int, split: str, prose: Prose) -> dict[str, Any]:
    """A record of INSteD; every second text has an intruder."""
    place = 2 + number % 3 if number % 2 else -1
    old = story.texts[place] if place >= 0 else ""
    new = prose.plain().text if place >= 0 else ""
    about = {"file_id": story.name, "train": split, "sen_position": place}
    return {**about, "ctx": story.texts, "to_be_replaced": old, "replace_with": new}


# SuperGLUE.


def write_superglue(folder: Path, examples: int, seed: int = 5) -> None:
    """RTE, COPA and ReCoRD as the benchmark releases them."""
    prose = Prose(seed)
    for split, share in {"train": 4, "val": 1, "test": 1}.items():
        hidden = split == "test"
        count = share * examples
        rte, copa, record = [], [], []
        for k, (label, (one, other)) in enumerate(same(prose, count)):
            known = {} if hidden else {"label": "entailment" if label else "not_entailment"}
            rte.append({"premise": one, "hypothesis": other, "idx": k, **known})
            choices = {"choice1": prose.plain().text, "choice2": other.capitalize()}
            asked = {"premise": one.capitalize(), "question": ("cause", "effect")[k % 2]}
            copa.append({**asked, **choices, "idx": k, **({} if hidden else {"label": label})})
            record.append(passage(prose, k, hidden))
        for name, records in (("RTE", rte), ("COPA", copa), ("ReCoRD", record)):
            json_lines(folder / "superglue" / name / f"{split}.jsonl", records)


def passage(prose: Prose, number: int, hidden: bool) -> dict[str, Any]:
    """A passage that names two people, and a query about one of them."""
    first, second = prose.random.sample(("Anna Berg", "Carl Dorn", "Emma Falk", "Otto Lind"), 2)
    text = f"{first} {prose.plain().text[4:]} {second} {prose.plain().text[4:]}"
    text += f"\n@highlight\n{prose.plain().text}"
    spans = []
    for name in (first, second):
        start = text.index(name)
        spans.append({"start": start, "end": start + len(name) - 1})
    query = {"query": f"@placeholder {prose.clause()}", "idx": number}
    if not hidden:
        query["answers"] = [{**spans[0], "text": first}]
    return {"idx": number, "passage": {"text": text, "entities": spans}, "qas": [query]}


def write_nli(folder: Path, examples: int, seed: int = 6) -> None:
    """SNLI and MNLI in their JSON Lines."""
    prose, labels = Prose(seed), ("entailment", "neutral", "contradiction")
    parts = {
        "snli_1.0": ("train", "dev", "test"),
        "multinli_1.0": ("train", "dev_matched", "dev_mismatched"),
    }
    for name, splits in parts.items():
        for split in splits:
            count = (4 if split == "train" else 1) * examples
            records = [
                {"sentence1": one, "sentence2": other, "gold_label": labels[k % 3]}
                for k, (_, (one, other)) in enumerate(same(prose, count))
            ]
            json_lines(folder / name / f"{name}_{split}.jsonl", records)
