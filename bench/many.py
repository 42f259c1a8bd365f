"""Thousands of actions through one runner, in slices that take turns with boxes alone: the same command, two at once."""
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import threading
import time

import measure
import report

TASKS = 20      # workspaces that the actions take turns in


def feed(runner, command, first, count):
    """Actions a second of one slice, and how many failed."""
    lines = "".join(json.dumps({"task": f"t{i % TASKS}", "command": command}) + "\n" for i in range(first, first + count))
    start = time.monotonic()
    writer = threading.Thread(target=lambda: (runner.stdin.write(lines.encode()), runner.stdin.flush()))
    writer.start()
    failed = sum(json.loads(runner.stdout.readline())["exit_code"] != 0 for _ in range(count))
    writer.join()
    return count / (time.monotonic() - start), failed


def start_runner(site, top, row):
    config = os.path.join(top, "config.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"work_root: {top}/work\nlogs_dir: {top}/logs\nallowed_binaries: [/usr/bin/busybox]\n")
    for i in range(TASKS):
        subprocess.run([site.px, "task", "prepare", f"t{i}", "--config", config, "--text", "f=0"], check=True, stdout=subprocess.DEVNULL)
    return subprocess.Popen([*row.command, "--config", config], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def take_turns(runner, command, launchers, slices, count):
    rates, boxes, kib, failed = [], [], [], 0
    for i in range(slices):
        rate, bad = feed(runner, command, i * count, count)
        rates.append(rate)
        failed += bad
        kib.append(measure.pss_kib(runner.pid))
        time.sleep(0.2)
        boxes.append(measure.slice_rate(launchers, 1000))
        time.sleep(0.2)
    return rates, boxes, kib, failed


def run(site, top, quick):
    row, command, alone = site.many_rows()
    if row.note:
        return [report.finish(row, None), report.finish(alone, None)]
    homes = [os.path.join(top, f"home{i}") for i in range(2)]
    made = []
    for home in homes:
        os.makedirs(home)
        words = [word.format(home) if word.startswith("work-dir") else word for word in alone.command]
        made.append(measure.Launcher(dataclasses.replace(alone, command=words), site))
    runner = start_runner(site, top, row)
    try:
        rates, boxes, kib, failed = take_turns(runner, command, made, *((5, 200) if quick else (10, 1000)))
    finally:
        runner.stdin.close()
        runner.wait()
        runner.stdout.close()
        for launcher in made:
            launcher.close()
    actions, base = statistics.median(rates), statistics.median(boxes)
    return [report.finish(row, {"per_s": actions, "x_boxes": actions / base, "first_kib": kib[0], "last_kib": kib[-1],
                                "grown_kib": kib[-1] - kib[0], "failed": failed}),
            report.finish(alone, {"per_s": base})]


def bench(site, quick):
    top = os.path.join(site.out, "many")
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    try:
        results = run(site, top, quick)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    report.table(results, [("a second", "per_s", 0), ("x boxes", "x_boxes", 2), ("KiB, first slice", "first_kib", 0),
                           ("KiB, last", "last_kib", 0)], f"{1000 if quick else 10000} actions")
    return results
