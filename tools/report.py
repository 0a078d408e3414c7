"""Drawings for the demos' scripts: lines on axes as SVG, one HTML page that needs nothing else, and
samples of `tandem ps` while they run."""
import html
import json
import subprocess
import threading
import time

# Told apart by people who do not see all colours, too (Okabe and Ito).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"]
SIMULATED = ", simulated"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 300, 70, 190, 34, 46


def ticks(low, high):
    """About five round numbers."""
    span = high - low
    step = 10 ** len(str(int(span))) if span >= 1 else 1.0
    while span / step < 4:
        step /= next((by for by in (2, 2.5, 5) if span / step * by >= 4), 10)
    first = -(-low // step)
    count = int((high - first * step) / step + 1e-9) + 1
    return [round((first + i) * step, 10) for i in range(count)]


def lines(title, x_label, y_label, series, steps=False, low_y=0.0):
    """series: [(name, [(x, y), ...])]. "NAME, simulated" is dashed, in the colour of NAME. steps: a
    value holds until the next. Returns an SVG element; without any point a sentence."""
    points = [p for _, values in series for p in values]
    if not points:
        return f"<p>{html.escape(title)}: nothing was seen.</p>"
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    high_y = max(y for _, y in points)
    high_x, high_y = max(high_x, low_x + 1e-9), max(high_y, low_y + 1e-9)
    across = lambda x: LEFT + (x - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)
    down = lambda y: (HEIGHT - BOTTOM
                      - (max(y, low_y) - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="20" '
           f'font-weight="bold">{html.escape(title)}</text>']
    for y in ticks(low_y, high_y):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down(y):.1f}" y2="{down(y):.1f}" '
                   f'stroke="#dddddd"/><text x="{LEFT - 6}" y="{down(y) + 4:.1f}" '
                   f'text-anchor="end">{y:g}</text>')
    for x in ticks(low_x, high_x):
        out.append(f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 16}" '
                   f'text-anchor="middle">{x:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" '
               f'text-anchor="middle">{html.escape(x_label)}</text>')
    out.append(f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" '
               f'text-anchor="middle">{html.escape(y_label)}</text>')
    kinds = list(dict.fromkeys(name.removesuffix(SIMULATED) for name, _ in series))
    for i, (name, values) in enumerate(series):
        colour = COLOURS[kinds.index(name.removesuffix(SIMULATED)) % len(COLOURS)]
        dashes = ' stroke-dasharray="5 3"' if name.endswith(SIMULATED) else ""
        path = []
        for n, (x, y) in enumerate(values):
            if steps and n:
                path.append(f"{across(x):.1f},{down(values[n - 1][1]):.1f}")
            path.append(f"{across(x):.1f},{down(y):.1f}")
        out.append(f'<polyline points="{" ".join(path)}" fill="none" stroke="{colour}" '
                   f'stroke-width="1.5"{dashes}/>')
        y = TOP + 18 * i + 1.5
        out.append(f'<line x1="{WIDTH - RIGHT + 8}" x2="{WIDTH - RIGHT + 26}" y1="{y}" y2="{y}" '
                   f'stroke="{colour}" stroke-width="2"{dashes}/><text x="{WIDTH - RIGHT + 30}" '
                   f'y="{TOP + 6 + 18 * i}">{html.escape(name)}</text>')
    return "\n".join(out) + "\n</svg>"


def distribution(values):
    """The points of its cumulative distribution: (value, share of those up to it in percent)."""
    ordered = sorted(values)
    return [(v, 100 * (i + 1) / len(ordered)) for i, v in enumerate(ordered)]


def write_page(path, title, paragraphs, plots):
    """One file that needs nothing else."""
    with open(path, "w") as f:
        f.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                f'<title>{html.escape(title)}</title>\n<style>body {{ font-family: sans-serif; '
                'max-width: 60em; margin: 2em auto; } table { border-collapse: collapse; } '
                'th, td { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #ddd; '
                '} td:first-child { text-align: left; }</style></head><body>\n')
        f.write(f"<h1>{html.escape(title)}</h1>\n")
        f.write("".join(f"<p>{html.escape(p)}</p>\n" for p in paragraphs))
        f.write("\n".join(plots) + "\n</body></html>\n")


class Sampler:
    """Samples `tandem ps` now and then until the end of the with-block: samples is [{seconds, name,
    resident_bytes, host_bytes, cached_bytes, duty_ppm}]."""

    FIELDS = ("name", "resident_bytes", "host_bytes", "cached_bytes", "duty_ppm")

    def __init__(self, tandem, environment, every_s=0.5):
        self.command, self.environment, self.every_s = ([tandem, "ps", "--json"], environment,
                                                        every_s)
        self.samples, self.over, self.thread = ([], threading.Event(),
                                                threading.Thread(target=self.run, daemon=True))

    def run(self):
        began = time.monotonic()
        while not self.over.wait(self.every_s):
            done = subprocess.run(self.command, env=self.environment, capture_output=True,
                                  text=True, check=False)
            try:
                jobs = json.loads(done.stdout)
            except ValueError:
                continue
            seconds = round(time.monotonic() - began, 3)
            self.samples += [{"seconds": seconds, **{field: job[field] for field in self.FIELDS}}
                             for job in jobs]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def series(self, field, scale=1):
        """[(name, [(seconds, value)])] of each job."""
        names = dict.fromkeys(s["name"] for s in self.samples)
        return [(name,
                 [(s["seconds"], s[field] / scale) for s in self.samples if s["name"] == name])
                for name in names]


def memory_plot(title, sampler):
    mib = 1 << 20
    series = [(f"{name}: on the GPU", values) for name,
              values in sampler.series("resident_bytes", mib)]
    series += [(f"{name}: on the host", values) for name,
               values in sampler.series("host_bytes", mib) if any(y for _, y in values)]
    return lines(title, "seconds", "MiB", series, steps=True)


def duty_plot(title, sampler):
    """No bound is all of it."""
    series = [(name, [(x, y or 100) for x, y in values]) for name,
              values in sampler.series("duty_ppm", 10000)]
    return lines(title, "seconds", "duty, %", series, steps=True)
