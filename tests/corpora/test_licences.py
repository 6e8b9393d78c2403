"""What licence follows from the sources', and what may not be passed on."""

from __future__ import annotations

import pytest

from corpora.errors import ConfigError
from corpora.licences import TABLE, combine, licence_id, lookup, of_card, shown
from tests.hub_routes import LICENCES


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["CC0-1.0"], "CC0-1.0"),
        (["PDM-1.0", "CC-BY-4.0"], "CC-BY-4.0"),
        (["CC-BY-3.0", "CC-BY-2.5", "CC-BY-4.0"], "CC-BY-4.0"),
        (["CC-BY-SA-3.0", "CC-BY-4.0"], "CC-BY-SA-3.0"),
        (["CC-BY-SA-3.0", "CC-BY-SA-4.0"], "CC-BY-SA-4.0"),
        (["MIT", "BSD-3-Clause", "Apache-2.0", "CC-BY-SA-4.0"], "CC-BY-SA-4.0"),
        (["CC-BY-NC-4.0", "CC-BY-4.0"], "CC-BY-NC-4.0"),
        (["CC-BY-NC-4.0", "CC-BY-NC-SA-4.0"], "CC-BY-NC-SA-4.0"),
        (["public-domain-us", "CC0-1.0"], "public-domain-us"),
    ],
)
def test_the_strictest_open_licence_holds_for_the_dataset(sources, expected):
    found = combine(sources)
    assert found.id == expected and found.redistributable and not found.incompatible
    assert combine(reversed(sources)) == found


@pytest.mark.parametrize("closed", ["LDC", "unknown", "research-only", "CC-BY-ND-4.0", "mixed"])
def test_one_closed_source_closes_the_dataset_and_is_named(closed):
    found = combine(["CC-BY-4.0", closed])
    assert not found.redistributable
    assert closed in found.reason and found.hub == "other"


@pytest.mark.parametrize(
    "sources", [["CC-BY-SA-4.0", "GFDL-1.3"], ["CC-BY-SA-4.0", "CC-BY-NC-4.0"]]
)
def test_licences_that_cannot_stand_together_are_named(sources):
    found = combine(["MIT", *sources])
    assert not found.redistributable and set(found.incompatible) == set(sources)
    assert all(name in found.reason for name in sources)


def test_no_licence_at_all_is_an_unknown_one():
    assert combine([]).sources == ("unknown",) and lookup("").id == "unknown"


def test_names_are_found_without_regard_to_case_and_others_are_refused_with_the_nearest():
    assert lookup("cc-by-sa-4.0").id == "CC-BY-SA-4.0"
    with pytest.raises(ConfigError) as caught:
        combine(["CC-BY-AS-4.0"])
    assert "did you mean 'CC-BY-SA-4.0'" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("CC BY 4.0", "CC-BY-4.0"),
        ("cc_by_sa_3.0", "CC-BY-SA-3.0"),
        ("https://creativecommons.org/licenses/by-nc-sa/4.0/deed.de", "CC-BY-NC-SA-4.0"),
        ("http://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        (
            "Creative Commons Attribution-ShareAlike 4.0 International (CC BY-SA 4.0)",
            "CC-BY-SA-4.0",
        ),
        ("Attribution-NonCommercial-NoDerivatives 4.0", "CC-BY-NC-ND-4.0"),
        ("The MIT License", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("https://opensource.org/licenses/BSD-3-Clause", "BSD-3-Clause"),
        ("public domain", "PDM-1.0"),
        ("Public domain in the USA.", "public-domain-us"),
        ("Other", "unknown"),
        ("The MIT License (MIT)", "MIT"),
        ("Public domain (in the USA)", "public-domain-us"),
        ("Licence: CC\u2011BY \u2013 4.0 DEED", "CC-BY-4.0"),
        ("Creative Commons Attribution 4.0 International Public License", "CC-BY-4.0"),
        ("CC-BY-SA-4", "CC-BY-SA-4.0"),
        ("https://www.apache.org/licenses/LICENSE-2.0.txt", "Apache-2.0"),
        ("https://creativecommons.org/licenses/by/3.0/us/legalcode", "CC-BY-3.0"),
        ("https://creativecommons.org/licenses/by/4.0/?ref=chooser", "CC-BY-4.0"),
        ("CC BY 4.0 (non-commercial)", None),
        ("CC BY 4.0 (text only)", None),
        ("CC BY-SA 4.0 (MIT)", None),
        ("https://creativecommons.org/licenses/by/4.0/ (NonCommercial only)", None),
        ("creativecommons.org/licenses/by/4.0/ and MIT", None),
        ("openrail", None),
        ("cc-by", None),
        ("https://example.org/licenses/by/4.0/", None),
    ],
)
def test_a_licence_has_many_names(name, id):
    assert licence_id(name) == id


def test_share_alike_and_attribution_are_said():
    reason = combine(["CC-BY-SA-4.0"]).reason
    assert "share alike" in reason and "attribution" in reason
    assert combine(["CC-BY-NC-4.0", "CC-BY-NC-SA-4.0"]).reason.count("non-commercial") == 1


def test_every_row_of_the_table_can_stand_alone():
    for id, row in TABLE.items():
        found = combine([id])
        assert found.id == id and found.redistributable == row.redistributable
        assert row.redistributable or row.reason


def test_the_hub_knows_the_name_of_every_licence():
    assert {row.hub for row in TABLE.values()} <= LICENCES


@pytest.mark.parametrize(
    ("metadata", "id"),
    [
        ({"license": "apache-2.0"}, "Apache-2.0"),
        ({"license": "cc-by-sa-4.0"}, "CC-BY-SA-4.0"),
        ({"license": "other", "license_name": "ldc"}, "LDC"),
        ({"license": "other"}, "unknown"),
        ({"license": "other", "license_name": "other"}, "unknown"),
        ({"license": ["mit"]}, "MIT"),
        ({"license": ["mit", "apache-2.0"]}, "unknown"),
        ({"license": "llama3"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_licence_that_a_card_names(metadata, id):
    assert of_card(metadata) == id


@pytest.mark.parametrize("licence", ["", "unknown", "CC0-1.0 AND unknown"])
def test_a_table_asks_for_a_licence_that_is_not_known(licence):
    assert shown(licence) == f"{licence or 'unknown'}: set `licence` of the source"
    assert shown("CC0-1.0 AND MIT") == "CC0-1.0 AND MIT"
