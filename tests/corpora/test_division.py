"""One division of the documents, which every builder keeps to."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import InputError
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.splits import SPLITS, Shares, split_of
from corpora.splits.division import FILE, Division, divide
from corpora.splits.prescribed import count_difference, prescribed_splits, read_table
from corpora.splits.seen import COLUMNS, rows_seen
from corpora.splits.stratification import DocumentTable
from corpora.store.atomic import staged
from corpora.store.documents import DocumentSizes, write_documents
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target
from tests.corpora.test_tasks_load import SETTINGS, SOURCES, inputs

SIZES = [(f"d{i}", f"book{i // 3}", 100 + i) for i in range(120)]
PAIRS = ["dissent", *SOURCES]
SHARES = Shares(0.6, 0.2, 0.2)


def divided(folder, *sources, seed=1, shares=SHARES, keep=None):
    """Document -> split, and what the manifest says."""
    folder.mkdir(exist_ok=True)
    counts = divide(sources, shares, folder, seed=seed, kept=keep).to_dict()
    table = pq.read_table(folder / FILE).to_pylist()
    found = {row["doc"]: SPLITS[row["split"]] for row in table}
    assert all(SPLITS[row["split"]] == found[row["doc"]] for row in table)
    return found, counts


def shares_of(found, sizes):
    total = dict.fromkeys(SPLITS, 0)
    for name, _, size in sizes:
        total[found[name]] += size
    return [total[split] / sum(total.values()) for split in SPLITS]


def near(found, sizes, wanted=(0.6, 0.2, 0.2)):
    return all(abs(a - b) <= 0.2 * b for a, b in zip(shares_of(found, sizes), wanted, strict=True))


def groups_cut(found, sizes):
    splits = {}
    for name, group, _ in sizes:
        splits.setdefault(group, set()).add(found[name])
    return [group for group, parts in splits.items() if len(parts) > 1]


def test_ids_in_lists_keep_their_dots(tmp_path):
    (tmp_path / "train.txt").write_text("0704.0001.txt\nwsj_02.mrg.gz\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("00/0704.0002\n", encoding="utf-8")
    found = {"0704.0001": "train", "wsj_02": "train", "0704.0002": "test"}
    assert read_table(tmp_path) == found


def test_a_table_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "table.tsv").write_text("train\ta\r\n", encoding="utf-8-sig")
    assert read_table(tmp_path / "table.tsv") == {"a": "train"}


def test_a_dataset_takes_no_two_documents_of_one_id(tmp_path):
    gold = (["rst"], SIZES[:9])
    with pytest.raises(InputError) as caught:
        divided(tmp_path, gold, (["bso", "sp"], SIZES[9:30]), (["sp"], SIZES[28:40]))
    said = (
        "source 2, source 3: two documents have the id 'd28' (one of 2 such ids), and the dataset"
    )
    assert str(caught.value).startswith(f"{said} 'sp' draws on both\n")
    sources = [(["sp"], SIZES[:9]), (["sp"], SIZES[8:20])]
    with pytest.raises(InputError, match=r"^one, two: two documents have the id 'd8', and the"):
        divide(sources, SHARES, tmp_path, seed=1, names=["one", "two"])
    # The annotated form of a text is no other document.
    found, _ = divided(tmp_path, gold, (["sp"], SIZES))
    assert len(found) == len(SIZES)


def test_whole_groups_come_near_their_shares_whatever_the_order(tmp_path):
    one, counts = divided(tmp_path / "one", (["sp"], SIZES[:50]), (["sp"], SIZES[50:]))
    two, _ = divided(tmp_path / "two", (["sp"], SIZES[::-1]))
    assert one == two and set(one) == {name for name, *_ in SIZES}
    assert near(one, SIZES) and not groups_cut(one, SIZES)
    assert counts["by"] == "group" and sum(counts["documents"].values()) == 120
    assert divided(tmp_path / "other", (["sp"], SIZES), seed=2)[0] != one


def test_every_dataset_comes_near_the_shares(tmp_path):
    """Sources of single documents for one dataset each, and all of them for another."""
    sources = [([f"own{i % 4}", "all"], SIZES[i : i + 1]) for i in range(0, 120, 3)]
    rare = [(f"rare{i}", f"rare{i}", 50) for i in range(6)]
    found, _ = divided(tmp_path / "one", *sources, (["rare"], rare))
    assert near(found, [size for _, sizes in sources for size in sizes])
    for i in range(4):
        own = [size for names, sizes in sources if f"own{i}" in names for size in sizes]
        assert {found[name] for name, *_ in own} == set(SPLITS)
    assert {found[name] for name, *_ in rare} == set(SPLITS)


def test_few_large_groups_are_divided_by_document_and_the_others_stay_whole(tmp_path):
    books = [(f"b{i}/{c}", f"b{i}", 1_000) for i in range(4) for c in range(50)]
    found, counts = divided(tmp_path / "one", (["novels"], books), (["sp"], SIZES))
    assert near(found, books) and groups_cut(found, books)
    assert near(found, SIZES) and not groups_cut(found, SIZES)
    assert counts["by"] == "document" and "chapters of one novel" in counts["reason"]
    assert counts["reason"].endswith("whole groups do not fit the shares")
    assert "novels" not in counts["reason"]  # it is on the cards of all datasets


def test_documents_of_a_table_stay_and_new_ones_fill_up_the_shares(tmp_path):
    found, _ = divided(tmp_path / "one", (["sp"], SIZES))
    new = [(f"n{i}", f"new{i // 3}", 100 + i) for i in range(60)]
    sources = [(["sp"], SIZES), (["sp"], new), (["bso"], new[:48])]
    again, counts = divided(tmp_path / "two", *sources, keep=Division.of(found))
    assert {name: again[name] for name in found} == found
    assert near(again, SIZES + new) and not groups_cut(again, SIZES + new)
    assert counts["kept"] == len(found) and "120 documents are where a table" in counts["reason"]
    # What is lopsided in the table is made up for by what is new.
    early = Division.of({name: "train" for name, *_ in SIZES[:60]})
    rest, _ = divided(tmp_path / "three", (["sp"], SIZES), keep=early)
    assert near(rest, SIZES) and {rest[name] for name, *_ in SIZES[:60]} == {"train"}


def test_the_rest_of_a_group_follows_those_of_its_documents_that_have_a_split(tmp_path):
    table = Division.of({"d0": "test", "d3": "train", "d4": "test", "stranger": "test"})
    found, counts = divided(tmp_path / "one", (["sp"], SIZES), keep=table)
    assert {found[f"d{i}"] for i in range(3)} == {"test"} and counts["kept"] == 3
    # Of a group in two splits each document is by itself.
    assert (found["d3"], found["d4"]) == ("train", "test")
    assert groups_cut(found, SIZES) == ["book1"]
    assert counts["by"] == "document" and "splits: the table divides them; 3" in counts["reason"]


def test_a_dataset_with_settled_documents_keeps_its_groups_whole(tmp_path):
    books = [(f"b{i}/{c}", f"b{i}", 1_000) for i in range(4) for c in range(50)]
    assert groups_cut(divided(tmp_path / "one", (["novels"], books))[0], books)
    table = Division.of({f"b0/{c}": "test" for c in range(50)})
    found, counts = divided(tmp_path / "two", (["novels"], books), keep=table)
    assert not groups_cut(found, books) and counts["by"] == "group"
    assert {found[f"b0/{c}"] for c in range(50)} == {"test"}


def test_prescribed_documents_are_where_they_are_said_to_be_and_new_ones_are_dealt_out(tmp_path):
    said = {f"d{i}": ("train", "validation", "")[min(i // 30, 2)] for i in range(75)}
    sources = [(["rst", "sp"], SIZES[:75]), (["sp"], SIZES[75:])]
    divided_ = divide(
        sources, SHARES, tmp_path, seed=1, prescribed=said, prescribed_words="as in the book"
    )
    division = Division.read(tmp_path)
    assert division.splits_of(list(said)) == [split or None for split in said.values()]
    assert {*division.splits_of([name for name, *_ in SIZES[75:]])} <= {*SPLITS}
    assert sum(divided_.documents.values()) == 120 - 15
    assert divided_.reason.endswith("do not fit the shares; as in the book")
    assert "d70" not in read_table(tmp_path / FILE) and len(read_table(tmp_path / FILE)) == 105


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("en_ewt-ud-dev.conllu", "validation"),
        ("train/2005.ascii.txt", "train"),
        ("2005-05-19.train-a.ascii.txt", "train"),
        ("TRAINING/wsj_0601.out.dis", "train"),
        ("train/a-test.txt", "test"),
        ("valid.txt", "validation"),
        ("trains/contest.txt", ""),
    ],
)
def test_the_split_that_a_path_names(path, split):
    assert split_of(path) == split


def test_what_prescribes_the_splits_of_a_source():
    wsj = [(f"00/wsj_{section:02}01", "") for section in range(25)]

    def sections(how):
        found = prescribed_splits(wsj, how)
        return [[int(n[-4:-2]) for n, s in found.items() if s == split] for split in SPLITS]

    assert sections("lin") == [[*range(2, 22)], [22], [23]]
    assert sections("ji") == [[*range(2, 21)], [0, 1], [21, 22]]
    # The coherence paper: a tenth of sections 00 to 13 for development.
    many = [(f"{s:02}/wsj_{s:02}{n:02}", "") for s in range(25) for n in range(10)]
    found = prescribed_splits(many[::-1], "coherence")
    split_of_name = {name[-4:]: split for name, split in found.items()}
    assert {split_of_name[f"{s:02}{n:02}"] for s in range(14) for n in range(1, 10)} == {"train"}
    assert {split_of_name[f"{s:02}00"] for s in range(14)} == {"validation"}
    assert {split_of_name[f"{s:02}{n:02}"] for s in range(14, 25) for n in range(10)} == {"test"}
    assert count_difference(found.values(), "lin") == ""
    assert count_difference(found.values(), "coherence") == (
        "126 / 14 / 110 documents (train / validation / test), where the paper counts "
        "1,240 / 138 / 1,053"
    )
    paper = ["train"] * 1240 + ["validation"] * 138 + ["test"] * 1053
    assert count_difference(paper, "coherence") == ""
    assert prescribed_splits([("a", "train"), ("b", "test")], "own") == {"a": "train", "b": "test"}
    with pytest.raises(InputError, match="document 'a' is prescribed: its file's path"):
        prescribed_splits([("a", "")], "own")
    with pytest.raises(InputError, match=r"'emma/01' is prescribed: it is no article"):
        prescribed_splits([*wsj, ("emma/01", "train")], "ji")


def test_no_group_gives_more_than_its_share_of_the_training(tmp_path, stage, make_document):
    """One book of forty chapters beside eleven of two."""
    books = [make_document(f"long/{i}", group="long") for i in range(40)]
    books += [make_document(f"b{b}/{c}", group=f"b{b}") for b in range(11) for c in range(2)]
    books += [make_document(f"t{i}", group="test") for i in range(30)]
    division = Division.of({d.id: "test" if d.group == "test" else "train" for d in books})

    def made(share):
        with staged(tmp_path / f"{share}") as partial:
            target = Target(partial, stage, 1, division, largest_group=share)
            manifest = BUILDERS.find("permuted").of({}).build(books, target)
        path = tmp_path / f"{share}" / "documents"
        return manifest, {
            split: Counter(pq.read_table(next(path.glob(f"{split}-*")))["group"].to_pylist())
            for split in ("train", "test")
        }

    manifest, rows = made(0.2)
    # Of c + 22 documents a fifth is c = 5.
    assert rows["train"] == {"long": 5, **{f"b{b}": 2 for b in range(11)}}
    assert rows["test"] == {"test": 30} and manifest["rejects"]["group_over_its_share"] == 35
    assert "document_in_no_split" not in manifest["rejects"]
    assert any(": 35 of long are left out" in note for note in manifest["notes"])
    _, rows = made(1.0)
    assert rows["train"]["long"] == 40


def test_shares_that_are_missed_are_said(build, make_document):
    documents = [make_document(f"d{i}") for i in range(20)]
    division = Division.of({f"d{i}": SPLITS[i % 2] for i in range(20)})
    _, manifest = build("permuted", documents, division=division)
    (note,) = [note for note in manifest["notes"] if "asked for were" in note]
    assert "80, 10, 10 %" in note and "`documents` 50, 50, 0 %" in note and "as given" in note
    assert any("prescribed without it" in note for note in manifest["notes"])
    division = Division.of(
        {f"d{i}": (*["train"] * 8, "validation", "test")[i % 10] for i in range(20)}
    )
    _, manifest = build("permuted", documents, "y", division=division)
    assert not [note for note in manifest["notes"] if "asked for were" in note]


@pytest.mark.parametrize("annotated_first", [True, False])
def test_a_document_in_two_sources_is_one_and_so_are_its_groups(tmp_path, annotated_first):
    gold = [(name, f"gold of {name}", 5) for name, *_ in SIZES[::4]]
    sources = [(["pdtb_marked"], gold), (["sp", "bso"], SIZES)]
    found, counts = divided(tmp_path / "one", *sources[:: 1 if annotated_first else -1])
    assert not groups_cut(found, SIZES) and near(found, gold) and near(found, SIZES)
    assert sum(counts["documents"].values()) == 120


def test_a_share_of_none_and_documents_without_text(tmp_path):
    sizes = [(f"d{i}", f"d{i}", 0) for i in range(30)]
    found, _ = divided(tmp_path / "one", (["sp"], sizes), shares=Shares(1, 0, 1))
    assert shares_of(found, [(n, g, 1) for n, g, _ in sizes]) == [0.5, 0, 0.5]
    assert divided(tmp_path / "two", (["sp"], sizes[:1]))[0] == {"d0": "train"}


def test_sizes_are_those_of_the_documents(tmp_path, make_document):
    documents = [make_document(f"d{i}", 3 + i, group=f"g{i % 2}") for i in range(5)]
    write_documents(documents, tmp_path, docs_per_shard=2)
    sizes = DocumentSizes(tmp_path)
    assert list(sizes) == list(sizes) == [(d.id, d.group, len(d.text)) for d in documents]


def test_a_division_is_read_as_it_was_written_and_refuses_a_stranger(tmp_path):
    found, counts = divided(tmp_path / "one", (["sp"], SIZES), (["gold"], SIZES[:60]))
    division = Division.read(tmp_path / "one")
    assert division.splits_of(list(found)) == list(found.values())
    assert (division.by, division.reason) == (counts["by"], counts["reason"])
    for stranger in ("d777", "d7#1"):
        assert stranger not in division
        with pytest.raises(InputError, match=f"'{stranger}' is in no split"):
            division.splits_of(["d1", stranger])


def documents_of(manifest, folder, *columns):
    """Document, without the number of a part, and split of each row of a dataset that says it."""
    for config in manifest["configs"]:
        for path in (folder / config).glob("*.parquet"):
            table = pq.read_table(path)
            for column in set(columns or COLUMNS) & set(table.column_names):
                for name in filter(None, table[column].to_pylist()):
                    whole, _, number = name.rpartition("#")
                    yield whole if number.isdigit() else name, path.name.partition("-")[0]


@pytest.mark.parametrize("name", PAIRS)
def test_every_builder_keeps_to_the_division(name, tmp_path, build):
    settings = {k: v for k, v in SETTINGS.get(name, {}).items() if k not in SPLITS}
    source = inputs(name, tmp_path)
    if name == "dissent":
        rows = pq.read_table(source[0], columns=["doc"])["doc"].unique().to_pylist()
    else:
        source = list(source)
        rows = [document.id for document in source]
    # By the number of the document, which no builder would do by itself.
    division = Division.of({name: SPLITS[i % 2] for i, name in enumerate(sorted(rows))})
    folder, manifest = build(name, source, division=division, **settings)
    found = set(documents_of(manifest, folder))
    if name in ("dc", "intrusion"):
        assert set(documents_of(manifest, folder, "donor")) <= found
    assert {split for _, split in found} == {"train", "validation"}
    assert all([split] == division.splits_of([document]) for document, split in found)
    details = manifest["details"]["split"]
    for said in details.values() if name == "dc" else [details]:
        assert said["reason"] == "as given"


def test_conversations_are_in_the_split_of_their_log(build):
    logs = [split_document(document) for document in open_source("sample:chat")]
    division = Division.of({log.id: SPLITS[i % 3] for i, log in enumerate(logs)})
    folder, manifest = build("dc", logs, division=division)
    found = set(documents_of(manifest, folder))
    assert found and all([split] == division.splits_of([log]) for log, split in found)


def test_shares_are_told_from_sizes():
    assert BUILDERS.find("permuted").share_fields() == SPLITS
    assert BUILDERS.find("rst").share_fields() == SPLITS
    assert BUILDERS.find("sp").share_fields() == ()


def written(folder, column, **splits):
    """A dataset folder with a column of documents."""
    (folder / "default").mkdir(parents=True)
    for split, names in splits.items():
        table = pa.table({column: pa.array(names)})
        pq.write_table(table, folder / "default" / f"{split}-00000-of-00001.parquet")
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    return folder, "default"


def test_rows_of_documents_that_were_trained_on_are_counted(tmp_path):
    names = ["a", "b", "c", "novel#1", "novel#2", "novel#3"]
    division = Division.of(dict.fromkeys(names, "train"))
    trained = written(tmp_path / "t", "doc", train=["a#0", "a#1", "novel#1#0"], test=["c"])
    more = written(tmp_path / "m", "document", train=["b", "novel#3"])
    none = written(tmp_path / "n", "id", train=["c"], test=["a", "b"])
    judged = written(
        tmp_path / "j", "doc", test=["a", "a#7", "b#2", "c", "novel#1", "novel#2", "x"], train=["c"]
    )
    assert rows_seen([trained], [judged], division) == {"rows": 7, "rows_seen": 3}
    assert rows_seen([trained, more], [judged], division) == {"rows": 7, "rows_seen": 4}
    assert rows_seen([trained, none], [none, judged], division) == {"rows": 9, "rows_seen": 3}
    with pytest.raises(InputError, match="no finished dataset"):
        rows_seen([(tmp_path / "gone", "")], [judged], division)


@pytest.mark.parametrize("name", ["pdtb_marked", "pdtb_explicit", "rst"])
def test_prescribed_splits_win_over_the_division(name, tmp_path, build):
    source = list(inputs(name, tmp_path))
    parts = {d.id: SPLITS[i % 3] for i, d in enumerate(source)}
    table = tmp_path / "table.tsv"
    table.write_text("".join(f"{s}\t{d}\n" for d, s in parts.items()), encoding="utf-8")
    division = Division.of({d.id: SPLITS[(i + 1) % 3] for i, d in enumerate(source)})
    settings = {**SETTINGS.get(name, {}), "table": str(table)}
    folder, manifest = build(name, source, division=division, **settings)
    found = set(documents_of(manifest, folder))
    assert found and all(parts[document] == split for document, split in found)


def test_a_dataset_whose_sources_gave_no_document_breaks_no_division(tmp_path):
    found, counts = divided(tmp_path / "d", (["sp"], SIZES), (["dc"], []))
    assert near(found, SIZES) and counts["by"] == "group"


def test_as_many_sources_as_a_glob_names():
    sources = [(["sp"], [(f"d{i}", f"d{i}", 10)]) for i in range(33_000)]
    assert DocumentTable.read(sources).source[-1] == 32_999
