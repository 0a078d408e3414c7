/* The tiles and a card for each GPU: who held it, how busy it was, whose memory is where. */
import {
	FONT,
	area,
	begin,
	cut,
	dashed,
	fitted,
	rule,
	stack,
	striped,
	theme,
	ticks,
	timeScale,
} from "/charts.js";
import {count, duration, make, setText, share, size} from "/format.js";

const LANE = 19,
	LANES_FEW = 9,
	LANES_MANY = 4;
const LABEL = 128,
	AXIS = 18,
	BUSY = 34,
	GAP = 8;
const MEMORY_HEIGHT = 132,
	MEMORY_HEIGHT_EMPTY = 62,
	MEMORY_TEXT = 18,
	LAYERS = 7,
	NAMED = 14; /* a layer of so many pixels has its name in it */

/* -- tiles -- */

const sums = {
	busy: {
		title: "GPUs busy",
		value: (m) => {
			const known = m.gpus.filter((g) => g.busy !== null);
			const mean = known.reduce((a, g) => a + g.busy, 0) / (known.length || 1);
			return [
				known.length ? share(mean) : "not known",
				"",
				m.gpus.length === 1 ? "1 GPU" : `mean of ${m.gpus.length} GPUs`,
			];
		},
		past: (p) => Math.max(p.busy, 0),
		max: () => 1,
	},
	device: {
		title: "Memory on the GPUs",
		value: (m) => {
			const used = m.gpus.reduce((a, g) => a + g.resident, 0),
				all = m.gpus.reduce((a, g) => a + g.capacity, 0);
			return [
				size(used),
				`of ${size(all)}`,
				`${all ? share(used / all) : "0%"} in the hands of jobs`,
			];
		},
		past: (p) => p.device,
		max: (m) => m.gpus.reduce((a, g) => a + g.capacity, 0) / (m.gpus.length || 1),
	},
	host: {
		title: "Memory on the host",
		value: (m) => {
			const host =
				m.live.reduce((a, j) => a + j.row.host, 0) +
				m.others.reduce((a, o) => a + o.host, 0);
			const limit =
				m.state.hostLimit && m.state.hostLimit !== "none"
					? `limit ${m.state.hostLimit}`
					: "no limit";
			return [size(host), "", `moved off the GPUs, ${limit}`];
		},
		past: (p) => Math.max(p.demanded - p.device, 0),
		max: null,
	},
	jobs: {
		title: "Processes",
		value: (m) => {
			const states = new Map();
			for (const job of m.live)
				states.set(job.row.state, (states.get(job.row.state) || 0) + 1);
			const foreign = m.others.reduce((a, o) => a + o.processes, 0);
			const others = [...states].filter(([state]) => state !== "running");
			const notes = others
				.sort((a, b) => b[1] - a[1])
				.map(([state, n]) => `${n} ${state}`);
			if (foreign) notes.push(`${foreign} of others`);
			return [
				String(states.get("running") || 0),
				"running",
				notes.join(", ") || "none waits",
			];
		},
	},
};

export class Tiles {
	constructor(root) {
		this.tiles = Object.values(sums).map((sum) => {
			const value = make("div", {class: "value"}),
				note = make("div", {class: "note"});
			const canvas = sum.past ? make("canvas", {"aria-hidden": "true"}) : null;
			root.append(
				make(
					"div",
					{class: "tile"},
					make("h2", {}, sum.title),
					value,
					note,
					canvas,
				),
			);
			return {sum, value, note, canvas};
		});
	}

	draw(model, span) {
		for (const tile of this.tiles) {
			const [value, unit, note] = tile.sum.value(model);
			if (tile.value.dataset.text !== value + unit) {
				tile.value.dataset.text = value + unit;
				tile.value.replaceChildren(value, " ", make("small", {}, unit));
			}
			setText(tile.note, note);
			if (tile.canvas) this.curve(tile, model, span);
		}
	}

	/* The mean of all GPUs, by the rounds of the first one. */
	curve(tile, model, span) {
		const at = begin(tile.canvas),
			gpus = model.gpus;
		if (!at || !gpus.length) return;
		const first = gpus[0].past,
			points = first.map((p, i) => ({
				t: p.t,
				v:
					gpus.reduce((a, g) => {
						const q = g.past[g.past.length - first.length + i];
						return a + (q ? tile.sum.past(q) : 0);
					}, 0) / gpus.length,
			}));
		const top = Math.max(1, ...points.map((p) => p.v));
		const scale = timeScale(model.now(), span, 0, at.width);
		area(
			at.g,
			scale,
			points,
			(p) => p.v,
			tile.sum.max ? tile.sum.max(model) || 1 : top * 1.2,
			6,
			at.height - 1,
			theme().accent,
			0.14,
		);
	}
}

/* -- lanes: who held the GPU -- */

function drawSegment(g, scale, segment, y, colour, now) {
	const x0 = Math.max(scale.x(segment.from), scale.left),
		x1 = Math.min(scale.x(Math.min(segment.to, now)), scale.right);
	const width = Math.max(x1 - x0, 1),
		top = y + 2,
		height = LANE - 5;
	if (x1 < scale.left || x0 > scale.right) return;
	switch (segment.kind) {
		case "running":
			g.fillStyle = colour;
			g.beginPath();
			g.roundRect(x0, top, width, height, Math.min(2, width / 2));
			g.fill();
			break;
		case "moving":
			g.fillStyle = striped(g, colour);
			g.fillRect(x0, top, width, height);
			g.strokeStyle = colour;
			g.lineWidth = 1;
			if (width > 3) g.strokeRect(x0 + 0.5, top + 0.5, width - 1, height - 1);
			break;
		case "waiting":
			g.fillStyle = colour;
			g.globalAlpha = 0.16;
			g.fillRect(x0, top, width, height);
			g.globalAlpha = 0.65;
			g.strokeStyle = colour;
			g.lineWidth = 1;
			if (width > 3) g.strokeRect(x0 + 0.5, top + 0.5, width - 1, height - 1);
			g.globalAlpha = 1;
			break;
		case "paused":
			g.fillStyle = theme().faint;
			for (let x = x0; x < x1; x += 5) g.fillRect(x, top + 2, 2, height - 4);
			break;
		case "bad":
			g.fillStyle = theme().bad;
			g.fillRect(x0, top + height / 2 - 2, width, 4);
			break;
		default:
			g.fillStyle = colour;
			g.globalAlpha = 0.55;
			g.fillRect(x0, top + height / 2 - 1, width, 2);
			g.globalAlpha = 1;
	}
}

/* Ms in which the job ran, since then. */
function ran(job, since, now) {
	let sum = 0;
	for (const s of job.segments)
		if (s.kind === "running" && s.to > since)
			sum += Math.min(s.to, now) - Math.max(s.from, since);
	return sum;
}

class Gpu {
	constructor(gpu) {
		this.number = make("span", {class: "number"});
		this.name = make("h2");
		this.facts = make("div", {class: "facts"});
		this.lanes = make("canvas", {role: "img"});
		this.memory = make("canvas", {role: "img"});
		this.memoryText = make("div", {class: "what"});
		this.root = make(
			"article",
			{class: "card gpu"},
			make("header", {class: "gpu-head"}, this.number, this.name, this.facts),
			make(
				"div",
				{class: "gpu-body"},
				make("div", {}, this.lanes),
				make("div", {}, this.memoryText, this.memory),
			),
		);
		this.root.dataset.uuid = gpu.uuid;
		this.spots = []; /* of the lanes: which job lies where */
	}

	head(gpu) {
		const facts = [];
		const fact = (name, value) => facts.push([name, value]);
		if (gpu.holder) fact("runs", gpu.holder);
		if (gpu.handovers)
			fact(
				"hand-overs",
				count(gpu.handovers) +
					(gpu.handover_ms ? ` of ${duration(gpu.handover_ms)}` : ""),
			);
		if (gpu.sms !== null) fact("SMs", share(gpu.sms));
		if (gpu.temperature !== null) fact("", `${gpu.temperature} °C`);
		if (gpu.watts !== null) fact("", `${Math.round(gpu.watts)} W`);
		if (gpu.mhz !== null) fact("", `${gpu.mhz} MHz`);
		const text = JSON.stringify(facts) + gpu.lost + gpu.divided;
		setText(this.number, gpu.index === null ? "GPU" : `GPU ${gpu.index}`);
		setText(this.name, gpu.name);
		this.name.title = gpu.uuid;
		if (this.facts.dataset.text === text) return;
		this.facts.dataset.text = text;
		this.facts.replaceChildren(
			...facts.map(([name, value]) =>
				make("span", {}, name ? `${name} ` : "", make("b", {}, value)),
			),
		);
		if (gpu.lost)
			this.facts.append(make("span", {class: "lost"}, "lost by the driver"));
		if (gpu.divided) this.facts.append(make("span", {}, "divided (MIG)"));
	}

	draw(model, gpu, span, lanesMax, selected) {
		this.head(gpu);
		this.drawLanes(model, gpu, span, lanesMax, selected);
		this.drawMemory(model, gpu, span);
	}

	drawLanes(model, gpu, span, lanesMax, selected) {
		const now = model.now(),
			since = now - span;
		const all = model
			.jobsOf(gpu, since)
			.map((job) => ({job, ran: ran(job, since, now)}));
		/* In the order of their processes, so that lanes stay where they are. */
		const shown = all
			.sort((a, b) => b.ran - a.ran)
			.slice(0, lanesMax)
			.sort((a, b) => a.job.row.pid - b.job.row.pid);
		const more = all.length - shown.length;
		const lanes = Math.max(shown.length, 1) + (more ? 1 : 0);
		const height = BUSY + GAP + lanes * LANE + AXIS;
		this.lanes.style.height = `${height}px`;
		const at = begin(this.lanes);
		if (!at) return;
		const {g, width} = at,
			c = theme();
		const scale = timeScale(now, span, LABEL, width - 1);
		const bottom = height - AXIS;
		for (const tick of ticks(scale, (t) => model.wallOf(t))) {
			const x = Math.round(scale.x(tick.t)) + 0.5;
			g.strokeStyle = c.grid;
			g.beginPath();
			g.moveTo(x, 0);
			g.lineTo(x, bottom);
			g.stroke();
			g.fillStyle = c.faint;
			g.textAlign = "center";
			if (x > LABEL + 20 && x < width - 24)
				g.fillText(tick.label, x, height - AXIS / 2 + 2);
		}
		g.textAlign = "left";
		g.fillStyle = c.quiet;
		g.fillText("busy", 0, BUSY / 2 + 2);
		g.font = "600 13px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
		g.fillStyle = c.text;
		g.fillText(gpu.busy === null ? "not known" : share(gpu.busy), 34, BUSY / 2 + 2);
		g.font = FONT;
		rule(g, LABEL, width, BUSY, c.line);
		area(g, scale, gpu.past, (p) => p.busy, 1, 3, BUSY, c.accent, 0.18);
		this.spots = [];
		shown.forEach(({job}, i) => {
			const y = BUSY + GAP + i * LANE,
				colour = c[`j${job.colour}`];
			if (job === selected) {
				g.fillStyle = c.accent;
				g.globalAlpha = 0.1;
				g.fillRect(0, y - 1, width, LANE);
				g.globalAlpha = 1;
			}
			g.fillStyle = colour;
			g.fillRect(0, y + LANE / 2 - 5, 8, 8);
			g.fillStyle = job.endedAt === null ? c.text : c.faint;
			fitted(g, job.row.name, 14, y + LANE / 2 - 1, LABEL - 26);
			rule(g, scale.left, scale.right, y + LANE - 1, c.grid);
			for (const segment of job.segments)
				drawSegment(g, scale, segment, y, colour, now);
			this.spots.push({y, job});
		});
		g.fillStyle = c.faint;
		if (!shown.length)
			g.fillText(
				"no job uses it through tandem",
				LABEL + 8,
				BUSY + GAP + LANE / 2 - 1,
			);
		if (more)
			g.fillText(
				`and ${more} more`,
				14,
				BUSY + GAP + shown.length * LANE + LANE / 2 - 1,
			);
		this.scale = scale;
		this.lanes.setAttribute(
			"aria-label",
			`Who held GPU ${gpu.index}: ` +
				(shown
					.map(({job}) => `${job.row.name} ${job.row.state}`)
					.join(", ") || "nobody"),
		);
	}

	/* Memory on the GPU above the line, on the host below it. */
	drawMemory(model, gpu, span) {
		const least = model.jobsOf(gpu, model.now() - span).length
			? MEMORY_HEIGHT
			: MEMORY_HEIGHT_EMPTY;
		const beside = this.lanes.clientHeight - MEMORY_TEXT;
		this.memory.style.height = `${Math.max(least, beside)}px`;
		const at = begin(this.memory);
		if (!at) return;
		const {g, width, height} = at,
			c = theme(),
			now = model.now();
		const scale = timeScale(now, span, 0, width - 1);
		const layers = this.layers(model, gpu, scale.from);
		const hostMax = Math.max(
			...layers.times.map((_, i) =>
				layers.host.reduce((a, l) => a + l.values[i], 0),
			),
			0,
		);
		const whole = Math.max(gpu.capacity, gpu.total, 1);
		const usable = height - 8,
			below = hostMax ? Math.min(0.45, hostMax / (whole + hostMax)) : 0;
		const base = 6 + usable * (1 - below),
			bottom = 6 + usable;
		stack(g, scale, layers.times, layers.device, whole, base, 6, c.card);
		if (below) stack(g, scale, layers.times, layers.host, hostMax, base, bottom, c.card);
		dashed(g, 0, width, base - ((base - 6) * gpu.capacity) / whole, c.quiet);
		rule(g, 0, width, base, c.faint);
		g.font = "11px system-ui, sans-serif";
		g.fillStyle = c.quiet;
		g.textAlign = "left";
		const label = (text, y, colour = c.quiet, atRight = false) => {
			const w = g.measureText(text).width,
				x = atRight ? width - w - 5 : 4;
			g.globalAlpha = 0.78;
			g.fillStyle = c.card;
			g.fillRect(x - 3, y - 7, w + 6, 14);
			g.globalAlpha = 1;
			g.fillStyle = colour;
			g.fillText(text, x, y);
		};
		/* The name is in the layer: its colour alone need not be told from others. */
		const nameLayers = (all, max, edge) => {
			let from = base;
			for (const {job, values} of all) {
				const value = values[values.length - 1] || 0;
				const to = from + ((edge - base) * value) / max;
				if (job && Math.abs(to - from) >= NAMED)
					label(cut(g, job.row.name, width / 3), (from + to) / 2, c.text, true);
				from = to;
			}
		};
		nameLayers(layers.device, whole, 6);
		if (below) nameLayers(layers.host, hostMax, bottom);
		this.stacked = {scale, layers};
		label(
			`capacity ${size(gpu.capacity)}`,
			base - ((base - 6) * gpu.capacity) / whole + 9,
		);
		if (below > 0.1) label("on the host", bottom - 8);
		const host = layers.hostNow;
		const where = [`${size(gpu.resident)} of ${size(gpu.capacity)} on the GPU`];
		if (host) where.push(`${size(host)} on the host`);
		setText(this.memoryText, where.join(", "));
		this.memoryText.title = this.memoryText.textContent;
		const whose = this.memoryAt(width);
		this.memory.setAttribute(
			"aria-label",
			this.memoryText.textContent + (whose ? `: ${whose.replaceAll("\n", ", ")}` : ""),
		);
	}

	/* Whose memory there was at that place: a line for each job, or "". */
	memoryAt(x) {
		if (!this.stacked) return "";
		const {scale, layers} = this.stacked,
			{times, device, host} = layers;
		let i = times.length - 1;
		while (i > 0 && times[i] > scale.t(x)) i--;
		return device
			.map((layer, k) => [layer, layer.values[i] || 0, host[k].values[i] || 0])
			.filter(([, on, off]) => on || off)
			.map(
				([{job}, on, off]) =>
					`${job ? job.row.name : "others"} ${size(on)}` +
					(off ? ` and ${size(off)} on the host` : ""),
			)
			.join("\n");
	}

	/* The largest jobs have a layer each; the others, and the time before this page, one. */
	layers(model, gpu, since) {
		const past = gpu.past.filter((p) => p.t >= since - 2000),
			times = past.map((p) => p.t);
		const jobs = model
			.jobsOf(gpu, since)
			.map((job) => ({
				job,
				most: Math.max(
					0,
					...job.points.slice(-120).map((p) => p.device + p.host),
				),
			}))
			.filter((j) => j.most)
			.sort((a, b) => b.most - a.most)
			.slice(0, LAYERS)
			.map((j) => j.job);
		const spread = (job, of) => {
			const values = new Float64Array(times.length);
			let i = 0;
			for (const point of job.points) {
				while (i < times.length && times[i] < point.t) i++;
				if (i < times.length && times[i] === point.t) values[i] = of(point);
			}
			return values;
		};
		const rest = (total, shown) =>
			total.map((v, i) =>
				Math.max(0, v - shown.reduce((a, l) => a + l.values[i], 0)),
			);
		const c = theme();
		const device = jobs.map((job) => ({
			job,
			colour: c[`j${job.colour}`],
			values: spread(job, (p) => p.device),
		}));
		const host = jobs.map((job) => ({
			job,
			colour: c[`j${job.colour}`],
			values: spread(job, (p) => p.host),
		}));
		device.push({
			colour: c.rest,
			values: rest(
				past.map((p) => p.device),
				device,
			),
		});
		host.push({
			colour: c.rest,
			values: rest(
				past.map((p) => Math.max(p.demanded - p.device, 0)),
				host,
			),
		});
		return {
			times,
			device,
			host,
			hostNow: past.length
				? Math.max(
						past[past.length - 1].demanded -
							past[past.length - 1].device,
						0,
					)
				: 0,
		};
	}

	/* What lies at that place of the lanes: {job, segment}, or null. */
	spot(x, y) {
		const found = this.spots.find((s) => y >= s.y && y < s.y + LANE);
		if (!found) return null;
		const t = this.scale.t(x);
		return {
			job: found.job,
			t,
			segment:
				x < LABEL
					? null
					: found.job.segments.find((s) => s.from <= t && t <= s.to),
		};
	}
}

/* -- all of them -- */

export class Gpus {
	constructor(root, onSelect, tip) {
		this.root = root;
		this.cards = new Map();
		root.addEventListener("mousemove", (e) => this.hover(e, tip));
		root.addEventListener("mouseleave", () => {
			tip.hidden = true;
		});
		root.addEventListener("click", (e) => {
			const spot = this.spotOf(e);
			if (spot) onSelect(spot.job);
		});
	}

	spotOf(e) {
		const card = e.target.closest && e.target.closest(".gpu");
		const gpu = card && this.cards.get(card.dataset.uuid);
		return gpu && e.target === gpu.lanes ? gpu.spot(e.offsetX, e.offsetY) : null;
	}

	/* What is to be said of that place, or "". */
	textOf(e) {
		const card = e.target.closest && e.target.closest(".gpu"),
			gpu = card && this.cards.get(card.dataset.uuid);
		if (gpu && e.target === gpu.memory) return gpu.memoryAt(e.offsetX);
		const spot = this.spotOf(e);
		if (!spot) return "";
		const {job, segment} = spot;
		let text = `${job.row.name}, pid ${job.row.pid}`;
		if (segment) {
			const kind = segment.kind === "moving" ? "drains or fills" : segment.kind;
			const to = Math.min(segment.to, this.model.now());
			text += `\n${kind} for ${duration(to - segment.from)}`;
		}
		return text;
	}

	hover(e, tip) {
		const text = this.textOf(e);
		tip.hidden = !text;
		if (!text) return;
		setText(tip, text);
		tip.style.left = `${Math.min(e.clientX + 14, innerWidth - 240)}px`;
		tip.style.top = `${e.clientY + 16}px`;
	}

	draw(model, span, selected) {
		const many = model.gpus.length > 3;
		this.model = model;
		this.root.classList.toggle("many", many);
		for (const gpu of model.gpus) {
			if (!this.cards.has(gpu.uuid)) {
				this.cards.set(gpu.uuid, new Gpu(gpu));
				this.root.append(this.cards.get(gpu.uuid).root);
			}
			this.cards
				.get(gpu.uuid)
				.draw(model, gpu, span, many ? LANES_MANY : LANES_FEW, selected);
		}
		for (const [uuid, card] of this.cards)
			if (!model.gpus.some((g) => g.uuid === uuid)) {
				card.root.remove();
				this.cards.delete(uuid);
			}
	}
}
