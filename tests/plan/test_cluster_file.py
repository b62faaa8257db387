"""Clusters in TOML files: what is read, and the errors."""

from pathlib import Path

import pytest

from bough.config.config import ConfigError
from bough.plan import Cluster, divide, read_cluster

GOOD = """
[devices]
kind = "H100 SXM"
count = 64
memory_gib = 80
peak_tflops = 989
bandwidth_gbs = 3350
link_gbs = 50
price_per_hour = 2.5
"""


def read(text: str, folder: Path) -> Cluster:
    file = folder / "cluster.toml"
    file.write_text(text)
    return read_cluster(file)


def test_a_file_with_devices_alone_has_defaults(tmp_path: Path) -> None:
    cluster = read(GOOD, tmp_path)
    assert cluster.devices.count == 64
    assert (cluster.schedule.staleness, cluster.layout.devices_per_replica) == (0, 1)
    assert 0 < cluster.efficiency.learner < cluster.efficiency.memory <= 1


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("count = 64", "count = 0", "devices.count: got 0; need greater than or equal to 1; correct the file"),
        ("count = 64", 'count = "64"', "devices.count: got '64'; need a valid integer; correct the file"),
        ("count = 64", "", "devices.count: got nothing; need a value; add it to the file"),
        ("[devices]", "[layout]", "got no table [devices]; need the devices that a plan is for; add them, such as"),
        ("memory_gib = 80", "memory_gib = -1", "devices.memory_gib: got -1; need greater than 0"),
        ("memory_gib = 80", "memory_gib = inf", "devices.memory_gib: got inf; need a finite number"),
        ("peak_tflops = 989", "", "devices: got no peak_tflops; need the rates of the data sheet; add them"),
        ("kind", "sort", "devices.sort: got an unknown field; need one of docs/plan.md; remove it"),
        ("[devices]", "[devices", "got no TOML"),
        ("price", "[layout]\ngeneration = 1.0\nprice", "layout.generation: got 1.0; need less than 1"),
        ("[devices]", "[efficiency]\nlearner = 1.5\n[devices]", "efficiency.learner: got 1.5; need less than or equal"),
        (
            "[devices]",
            "[layout]\nin_turn = true\n[schedule]\nstaleness = 1\n[devices]",
            "got layout.in_turn = true with schedule.staleness = 1; need staleness 0",
        ),
    ],
)
def test_a_wrong_file(before: str, after: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(GOOD.replace(before, after, 1), tmp_path)
    assert message in str(caught.value)
    assert "cluster.toml" in str(caught.value)


def test_all_wrong_fields_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(GOOD.replace("64", "0").replace("80", "-1"), tmp_path)
    assert "devices.count" in str(caught.value)
    assert "devices.memory_gib" in str(caught.value)
    with pytest.raises(ConfigError, match="need a TOML file"):
        read_cluster(tmp_path / "nothing.toml")


def test_the_division_of_devices(tmp_path: Path) -> None:
    def split(count: int, layout: str) -> tuple[int, int, bool]:
        found = divide(read(f"{GOOD}\n[layout]\n{layout}", tmp_path), count)
        return found.replicas, found.ranks, found.in_turn

    assert split(64, "generation = 0.75") == (48, 16, False)
    assert split(64, "generation = 0.75\ndevices_per_replica = 4") == (12, 16, False)
    assert split(64, "in_turn = true\ndevices_per_replica = 8") == (8, 64, True)
    assert split(1, "") == (1, 1, True)
    assert split(2, "generation = 0.99") == (1, 1, False)
    assert split(4, "devices_per_replica = 4") == (1, 4, True)
    for count in range(1, 65):
        for each in (1, 2, 4):
            replicas, ranks, in_turn = split(count, f"generation = 0.6\ndevices_per_replica = {each}")
            assert replicas >= 1
            assert ranks >= 1
            assert in_turn or replicas * each + ranks == count
