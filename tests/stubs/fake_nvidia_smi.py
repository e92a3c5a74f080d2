"""Stands in for `nvidia-smi`: the cards in the JSON file that FAKE_CARDS names.

{"since": seconds since the epoch, "cards": [{"name", "uuid", "total", "reserved", "free", "capability"}, ...]}, memory
in MiB. `free` may be [[seconds after `since`, MiB], ...]: memory that comes back over time.
"""
# ruff: noqa: PTH123

import json
import os
import sys
import time

DRIVER = "580.95.05"


def main():
    with open(os.environ["FAKE_CARDS"], encoding="utf-8") as file:
        document = json.load(file)
    if document.get("broken"):
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        return 9
    age = time.time() - document.get("since", 0)
    query = next((word for word in sys.argv[1:] if word.startswith("--query-gpu=")), None)
    if query is not None:
        fields = query.partition("=")[2].split(",")
        for index, card in enumerate(document["cards"]):
            free = card["free"]
            if isinstance(free, list):
                free = [size for after, size in free if age >= after][-1]
            values = {
                "index": index, "name": card["name"], "uuid": card["uuid"], "memory.total": card["total"],
                "memory.reserved": card.get("reserved", 0), "memory.free": free, "compute_cap": card["capability"],
                "display_active": "Disabled", "mig.mode.current": "[N/A]", "driver_version": DRIVER,
            }  # fmt: skip
            print(", ".join(str(values[field]) for field in fields))
    elif sys.argv[1:2] == ["topo"]:
        count = len(document["cards"])
        print("\t" + "\t".join(f"GPU{number}" for number in range(count)))
        for row in range(count):
            print(f"GPU{row}\t" + "\t".join(" X " if row == column else "PHB" for column in range(count)))
    else:
        print(f"| NVIDIA-SMI {DRIVER}    Driver Version: {DRIVER}    CUDA Version: 13.0     |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
