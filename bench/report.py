"""How it is told: figures from samples, verdicts from goals, tables from figures."""
import operator

SIGNS = {"<=": operator.le, ">=": operator.ge}
LABELS = {"x_bwrap": "x bwrap ", "p99_over_p50": "p99/p50 "}    # any other is its row's main figure and needs none


def figures(nsec):
    """Milliseconds at the median and the 99th percentile."""
    ordered = sorted(nsec)
    p50 = ordered[len(ordered) // 2] / 1e6
    p99 = ordered[int((len(ordered) - 1) * 0.99)] / 1e6
    return {"p50_ms": p50, "p99_ms": p99, "p99_over_p50": p99 / p50, "runs": len(ordered)}


def goal_text(goals):
    return ", ".join(f"{LABELS.get(name, '')}{sign} {limit:g}" for name, sign, limit in goals) or "-"


def verdict(goals, values):
    """met, or missed with the figures that missed. A goal whose figure is not known is not judged."""
    known = [goal for goal in goals if values.get(goal[0]) is not None]
    missed = [f"{LABELS.get(name, '')}{values[name]:.2f}" for name, sign, limit in known
              if not SIGNS[sign](values[name], limit)]
    if missed:
        return "missed: " + ", ".join(missed)
    return "met" if known else "-"


def finish(row, values):
    """The row as it goes into the JSON."""
    result = {"row": row.name, **(values or {}), "goal": goal_text(row.goals)}
    result["verdict"] = verdict(row.goals, values) if values else row.note
    if values and values.get("failed"):
        result["verdict"] += f"; {values['failed']} runs failed"
    return result


def latency_results(rows, samples):
    found = {name: {**figures(nsec), "failed": failed} for name, (nsec, failed) in samples.items() if nsec}
    for row in rows:
        if row.name in samples and row.name not in found:
            row.note = "fails: no run went well"
    base = found.get(rows[0].name)
    for row in rows:
        values, peer = found.get(row.name), found.get(row.peer)
        if values and base:
            values["x_base"] = values["p50_ms"] / base["p50_ms"]
        if values and peer:
            values["x_bwrap"] = values["p50_ms"] / peer["p50_ms"]
    return [finish(row, found.get(row.name)) for row in rows]


def neighbour_results(rows, samples):
    """As latency_results; the first row is the box that has no hostile neighbour."""
    results = latency_results(rows, samples)
    alone = results[0].get("p99_ms")
    for row, result in zip(rows, results):
        if alone and "p99_ms" in result:
            result["p99_x_alone"] = result["p99_ms"] / alone
            result["verdict"] = verdict(row.goals, result)
    return results


def throughput_results(rows, by_jobs):
    """by_jobs is {launchers: {name: runs a second}}; the goals are about the most launchers."""
    most = max(by_jobs)
    results = []
    for row in rows:
        values = {f"per_s_{jobs}": rates[row.name] for jobs, rates in by_jobs.items() if row.name in rates}
        if row.name in by_jobs[most] and row.peer in by_jobs[most]:
            values["x_bwrap"] = by_jobs[most][row.name] / by_jobs[most][row.peer]
        results.append(finish(row, values))
    return results


def cell(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def table(results, columns, head="row"):
    """columns: [(heading, key, digits)]; the goal and the verdict come last."""
    lines = [[head, *(heading for heading, _, _ in columns), "goal", "verdict"]]
    for result in results:
        lines.append([result["row"], *(cell(result.get(key), digits) for _, key, digits in columns), result["goal"],
                      result["verdict"]])
    widths = [max(map(len, column)) for column in zip(*lines)]
    last = len(widths) - 2          # words to the left, figures to the right
    for line in lines:
        print(" | ".join(text.rjust(width) if 0 < i < last else text.ljust(width)
                         for i, (text, width) in enumerate(zip(line, widths))).rstrip())
    print(flush=True)


def latency_table(results, head, base):
    table(results, [("p50 ms", "p50_ms", 3), ("p99 ms", "p99_ms", 3), ("p99/p50", "p99_over_p50", 2),
                    (f"x {base}", "x_base", 2), ("x bwrap", "x_bwrap", 2)], head)


def neighbour_table(results):
    table(results, [("p50 ms", "p50_ms", 3), ("p99 ms", "p99_ms", 3), ("p50 x alone", "x_base", 2),
                    ("p99 x alone", "p99_x_alone", 2)], "a command while the box beside it")


def throughput_table(results, jobs):
    table(results, [*((f"{count} launcher{'s' if count > 1 else ''}", f"per_s_{count}", 0) for count in jobs),
                    ("x bwrap", "x_bwrap", 2)], "boxes a second")
