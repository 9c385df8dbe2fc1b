"""Names in the log directory."""

from __future__ import annotations

import pytest

from delta_core.log.log_path import LogFileKind, LogPath, checkpoint_path, checksum_path, commit_path

V = "00000000000000000010"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{V}.json", LogFileKind.COMMIT),
        (f"{V}.crc", LogFileKind.CHECKSUM),
        (f"{V}.checkpoint.parquet", LogFileKind.CLASSIC_CHECKPOINT),
        (f"{V}.checkpoint.0000000001.0000000003.parquet", LogFileKind.MULTIPART_CHECKPOINT),
        (f"{V}.checkpoint.{UUID}.parquet", LogFileKind.V2_CHECKPOINT),
        (f"{V}.checkpoint.{UUID}.json", LogFileKind.V2_CHECKPOINT),
        (f"{V}.00000000000000000012.compacted.json", LogFileKind.COMPACTED),
    ],
)
def test_known_names(name: str, kind: LogFileKind) -> None:
    for text in (name, f"_delta_log/{name}"):
        parsed = LogPath.parse(text)
        assert parsed is not None
        assert (parsed.kind, parsed.version, parsed.name) == (kind, 10, name)


@pytest.mark.parametrize(
    "name",
    [
        f"{V}.json#1",
        f"{V}.json.tmp",
        f".{V}.json.crc",
        f"{V}.json ",
        f"{V}.JSON",
        f"{V}.json\n",
        f"0{V}.json",
        "10.json",
        "-0000000000000000010.json",
        "\N{ARABIC-INDIC DIGIT ONE}" * 20 + ".json",
        "99999999999999999999.json",
        f"{V}.checkpoint.parquet.crc",
        f"{V}.checkpoint.0000000004.0000000003.parquet",
        f"{V}.checkpoint.0000000000.0000000003.parquet",
        f"{V}.checkpoint.1.3.parquet",
        f"{V}.checkpoint.not-a-uuid.parquet",
        f"{V}.00000000000000000009.compacted.json",
        f"{V}.compacted.json",
        "_last_checkpoint",
        "",
    ],
)
def test_other_names_mean_nothing(name: str) -> None:
    assert LogPath.parse(name) is None


def test_the_greatest_version() -> None:
    last = f"{2**63 - 1:020d}"
    for name in (f"{last}.json", f"{last}.{last}.compacted.json", f"{V}.{last}.compacted.json"):
        assert LogPath.parse(name) is not None
    beyond = f"{2**63:020d}"
    for name in (f"{beyond}.json", f"{V}.{beyond}.compacted.json", f"{last}.{V}.compacted.json"):
        assert LogPath.parse(name) is None


def test_written_names_are_read() -> None:
    for path in (commit_path(7), checkpoint_path(7), checksum_path(7)):
        parsed = LogPath.parse(path)
        assert parsed is not None
        assert parsed.version == 7
    part = LogPath.parse(f"{V}.checkpoint.0000000002.0000000003.parquet")
    assert part is not None
    assert (part.part, part.num_parts) == (2, 3)
