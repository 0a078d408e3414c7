/* Drawing on canvases: sizes, colours of the theme, axes, areas and lines. */

const names = [
	"text",
	"quiet",
	"faint",
	"line",
	"grid",
	"card",
	"accent",
	"bad",
	"wait",
	"rest",
	"j0",
	"j1",
	"j2",
	"j3",
	"j4",
	"j5",
	"j6",
	"j7",
];
let colours = null;
export const FONT = "11.5px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
	colours = null;
});

/* The theme's colours by name. */
export function theme() {
	if (!colours) {
		const style = getComputedStyle(document.documentElement);
		colours = {};
		for (const name of names)
			colours[name] = style.getPropertyValue(`--${name}`).trim();
	}
	return colours;
}

/* A cleared context in CSS pixels, or null where the canvas is not shown. */
export function begin(canvas) {
	const width = canvas.clientWidth,
		height = canvas.clientHeight,
		scale = devicePixelRatio || 1;
	if (!width || !height) return null;
	if (
		canvas.width !== Math.round(width * scale) ||
		canvas.height !== Math.round(height * scale)
	) {
		canvas.width = Math.round(width * scale);
		canvas.height = Math.round(height * scale);
	}
	const g = canvas.getContext("2d");
	g.setTransform(scale, 0, 0, scale, 0, 0);
	g.clearRect(0, 0, width, height);
	g.font = FONT;
	g.textBaseline = "middle";
	return {g, width, height};
}

/* Where the last `span` ms up to `now` lie between two columns. */
export function timeScale(now, span, left, right) {
	return {
		from: now - span,
		x: (t) => left + ((t - now + span) / span) * (right - left),
		t: (x) => now - span + ((x - left) / (right - left)) * span,
		left,
		right,
	};
}

const STEPS = [1000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000];

const minutes = new Intl.DateTimeFormat([], {hour12: false, hour: "2-digit", minute: "2-digit"});
const seconds = new Intl.DateTimeFormat([], {hour12: false, timeStyle: "medium"});

/* Times at whole steps of the wall clock: [{t, label}], at most one for each 84 pixels. */
export function ticks(scale, wallOf) {
	const span = scale.t(scale.right) - scale.from;
	const room = Math.max(1, Math.floor((scale.right - scale.left) / 84));
	const step = STEPS.find((s) => span / s <= room) || STEPS[STEPS.length - 1];
	const offset = wallOf(0),
		zone = new Date().getTimezoneOffset() * 60000;
	const found = [];
	for (
		let wall = Math.ceil((scale.from + offset - zone) / step) * step;
		wall - offset + zone <= scale.from + span;
		wall += step
	) {
		const label = (step < 60000 ? seconds : minutes).format(wall + zone);
		found.push({t: wall + zone - offset, label});
	}
	return found;
}

/* Clips to columns, so that curves end at the edges. */
function clipped(g, scale, top, bottom, draw) {
	g.save();
	g.beginPath();
	g.rect(scale.left, top - 2, scale.right - scale.left, bottom - top + 4);
	g.clip();
	draw();
	g.restore();
}

/* points: [{t}]; value(point): 0 to max, null where there is a gap. */
export function area(g, scale, points, value, max, top, bottom, colour, fill) {
	const y = (v) => bottom - Math.min(v / max, 1) * (bottom - top);
	clipped(g, scale, top, bottom, () => {
		const line = new Path2D(),
			shape = new Path2D();
		let x = null;
		const close = () => {
			if (x === null) return;
			shape.lineTo(x, bottom);
			shape.closePath();
			x = null;
		};
		for (const point of points) {
			const v = value(point);
			if (v === null || v === undefined || v < 0) {
				close();
				continue;
			}
			if (x === null) {
				line.moveTo(scale.x(point.t), y(v));
				shape.moveTo(scale.x(point.t), bottom);
			} else {
				line.lineTo(scale.x(point.t), y(v));
			}
			shape.lineTo(scale.x(point.t), y(v));
			x = scale.x(point.t);
		}
		close();
		if (fill) {
			g.globalAlpha = fill;
			g.fillStyle = colour;
			g.fill(shape);
			g.globalAlpha = 1;
		}
		g.strokeStyle = colour;
		g.lineWidth = 1.5;
		g.lineJoin = "round";
		g.stroke(line);
	});
}

/* layers: [{colour, values}], each of times.length values. Upwards from the base, or downwards,
   with a line of the colour `between` around each. A value stays until the next one, as memory
   does. */
export function stack(g, scale, times, layers, max, base, edge, between) {
	const sums = new Float64Array(times.length);
	const y = (v) => base + (edge - base) * Math.min(v / max, 1);
	clipped(g, scale, Math.min(base, edge), Math.max(base, edge), () => {
		for (const layer of layers) {
			const shape = new Path2D();
			const end = (i) =>
				i + 1 < times.length ? scale.x(times[i + 1]) : scale.right;
			for (let i = 0; i < times.length; i++) {
				shape.lineTo(scale.x(times[i]), y(sums[i]));
				shape.lineTo(end(i), y(sums[i]));
			}
			for (let i = times.length - 1; i >= 0; i--) {
				sums[i] += layer.values[i];
				shape.lineTo(end(i), y(sums[i]));
				shape.lineTo(scale.x(times[i]), y(sums[i]));
			}
			shape.closePath();
			g.fillStyle = layer.colour;
			g.fill(shape);
			g.strokeStyle = between;
			g.lineWidth = 1;
			g.stroke(shape);
		}
	});
}

export function dashed(g, x0, x1, y, colour) {
	g.save();
	g.setLineDash([5, 4]);
	g.strokeStyle = colour;
	g.lineWidth = 1;
	g.beginPath();
	g.moveTo(x0, Math.round(y) + 0.5);
	g.lineTo(x1, Math.round(y) + 0.5);
	g.stroke();
	g.restore();
}

export function rule(g, x0, x1, y, colour) {
	g.strokeStyle = colour;
	g.lineWidth = 1;
	g.beginPath();
	g.moveTo(x0, Math.round(y) + 0.5);
	g.lineTo(x1, Math.round(y) + 0.5);
	g.stroke();
}

/* The text, cut with "…" where it does not fit. */
export function cut(g, text, width) {
	if (g.measureText(text).width <= width) return text;
	while (text.length > 1 && g.measureText(text + "…").width > width) text = text.slice(0, -1);
	return text + "…";
}

export function fitted(g, text, x, y, width) {
	g.fillText(cut(g, text, width), x, y);
}

const stripes = new Map();

/* Diagonal stripes of a colour, for what is under way. */
export function striped(g, colour) {
	if (!stripes.has(colour)) {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 6;
		const t = tile.getContext("2d");
		t.strokeStyle = colour;
		t.lineWidth = 1.6;
		t.beginPath();
		for (const shift of [-6, 0, 6]) {
			t.moveTo(shift - 1, 7);
			t.lineTo(shift + 7, -1);
		}
		t.stroke();
		stripes.set(colour, tile);
	}
	return g.createPattern(stripes.get(colour), "repeat");
}
