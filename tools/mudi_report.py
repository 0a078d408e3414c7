"""The figures of run-mudi: sums of its runs, the tables that it prints, and those of the page."""

LABELS = {"solo": "training alone", "time-sharing": "time-sharing", "halves": "halves",
          "gslice": "as GSLICE", "mudi": "mudi", "tandem": "tandem"}
KEYS = ("left_slope", "right_slope", "knee_share", "knee_latency")
PAPER = (0.23, 0.16, 0.05, 0.06)
ROUNDS = ("mudi",)  # only this way tunes


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers) if numbers else 0.0


def training_of(runs, way, pairs):
    return mean(r["training"] for r in runs if r["way"] == way and r["pair"] in pairs)


def summarise(runs, way):
    """The sums of a way. It is compared with halves and solo in its own pairs only."""
    mine = [r for r in runs if r["way"] == way]
    pairs = {r["pair"] for r in mine}
    requests = sum(r["requests"] for r in mine)
    kept = requests - sum(r["left_out"] for r in mine)
    training, halves, solo = (training_of(runs, w, pairs) for w in (way, "halves", "solo"))
    return {"way": way, "pairs": len(pairs),
            "violations": sum(r["missed"] for r in mine) / max(1, kept),
            "worst": max(r["violations"] for r in mine), "training": training,
            "over_halves": training / halves if halves else 0.0,
            "bound": solo / halves if halves else 0.0,
            "of_bound": training / solo if solo else 0.0,
            "rounds": max(r["rounds"] for r in mine), "paused": mean(r["paused"] for r in mine),
            "left_out": 1 - kept / requests if requests else 0.0,
            "failed": sum(r["failed"] for r in mine), "lagged": any(r["lagged"] for r in mine)}


def sums(runs):
    return [summarise(runs, way) for way in LABELS if any(r["way"] == way for r in runs)]


def cells(way):
    """A row of the table; what a way has no figure of is a dash."""
    served = way["way"] != "solo"
    return [LABELS[way["way"]], f"{100 * way['violations']:.2f} %" if served else "-",
            f"{100 * way['worst']:.1f} %" if served else "-", f"{way['training']:.2f} s/s",
            f"{way['over_halves']:.2f}x" if way["over_halves"] else "-",
            f"{100 * way['of_bound']:.0f} %" if way["of_bound"] else "-",
            str(way["rounds"]) if way["way"] in ROUNDS else "-"]


HEAD = ["way", "violations", "worst pair", "training", "of halves", "of alone", "rounds"]


def pair_cells(runs, pair):
    """Training and violations of each way beside that pair's bound."""
    def one(way):
        return next((r for r in runs if r["way"] == way and r["pair"] == pair), None)
    solo, halves = one("solo"), one("halves")
    bound = solo["training"] / halves["training"] if solo and halves and halves["training"] else 0
    row = [pair, f"{bound:.2f}x" if bound else "-"]
    for way in LABELS:
        run = one(way)
        if way != "solo":
            row.append(f"{run['training']:.2f} / {100 * run['violations']:.2f} %" if run else "-")
    return row


PAIR_HEAD = ["pair", "bound"] + [label for way, label in LABELS.items() if way != "solo"]


def bound_sentence(ways):
    halves = next((w for w in ways if w["way"] == "halves"), None)
    if not halves or not halves["bound"]:
        return "The bound is not known: it needs the ways solo and halves."
    text = (f"Bound: beside halves no policy can give training more than {halves['bound']:.2f}x, "
            "its speed alone on the whole GPU.")
    return text + (" 2x is out of reach." if halves["bound"] < 2 else "")


def errors_of(judged):
    """[(key, error, error of the mean of all, the paper's)], means over the services."""
    return [(key, mean(row[f"unseen_{key}"] for row in judged),
             mean(row[f"mean_of_all_{key}"] for row in judged), paper)
            for key, paper in zip(KEYS, PAPER)] if judged else []


def print_columns(rows):
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{c:{'<' if not k else '>'}{widths[k]}}" for k, c in enumerate(row)))


def print_all(runs, judged, pairs):
    ways = sums(runs)
    print()
    print_columns([HEAD] + [cells(w) for w in ways])
    print(bound_sentence(ways))
    print("\ntraining, seconds a second, and violations:")
    print_columns([PAIR_HEAD] + [pair_cells(runs, p) for p in pairs
                                 if any(r["pair"] == p for r in runs)])
    requests = sum(r["requests"] for r in runs)
    print(f"\n{requests} requests; {100 * sum(r['left_out'] for r in runs) / max(1, requests):.1f} "
          f"% were left out, {sum(r['failed'] for r in runs)} failed; "
          f"{sum(r['lagged'] for r in runs)} of {len(runs)} runs lagged")
    if judged:
        print("\nerror of the curves' numbers beside a neighbour that was left out "
              "(mean of the services):")
        print_columns([["number", "error", "mean of all", "paper"]] + [
            [key, f"{error:.2f}", f"{of_mean:.2f}", f"{paper:.2f}"]
            for key, error, of_mean, paper in errors_of(judged)])


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0])] + lines[1:])
