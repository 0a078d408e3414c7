/* The selected job: what can be done to it, why it waits, its recent past. The list of events. */
import {area, begin, dashed, rule, theme, timeScale} from "/charts.js";
import {clock, count, duration, make, setText, share, size} from "/format.js";
import {kindOf} from "/model.js";

const EVENTS_SHOWN = 60;
/* Verbs of which one makes sense at a time. */
const COUNTERPART = {pause: "resume", resume: "pause"};
/* A question waits so long for its answer. */
const ASK_MS = 4000;

const charts = {
	p99: {
		title: "P99, and its SLO",
		value: (p) => p.p99,
		text: duration,
		max: null,
		line: (r) => r.slo,
		when: (r) => r.service,
	},
	rate: {
		title: "Requests a second",
		value: (p) => p.rate,
		text: count,
		max: null,
		when: (r) => r.service,
	},
	time: {
		title: "Share of the time",
		value: (p) => p.time,
		text: share,
		max: () => 1,
		line: (r) => r.duty,
	},
	device: {
		title: "Memory on the GPU",
		value: (p) => p.device,
		text: size,
		max: (r) => Math.max(r.limit, r.hard, r.peak, 1),
		line: (r) => r.limit,
	},
	host: {
		title: "Memory on the host",
		value: (p) => p.host,
		text: size,
		max: (r) => Math.max(r.peak, 1),
		when: (r, job) => job.points.some((p) => p.host),
	},
	step: {
		title: "Length of a step",
		value: (p) => p.step,
		text: duration,
		max: null,
		when: (r) => r.step !== null,
	},
};

/* What stands in the list: [title, value]; null is left out. */
const facts = [
	["GPU", (r) => (r.gpu === null ? null : String(r.gpu))],
	["class", (r) => r.class],
	["state", (r) => r.state],
	["duty", (r) => (r.duty === null ? null : share(r.duty))],
	["share of the SMs", (r) => (r.share === null ? null : share(r.share))],
	["service", (r) => r.service || null],
	["requests a second", (r) => (r.rate === null ? null : count(r.rate))],
	["requests waiting", (r) => (r.service ? count(r.queued) : null)],
	["P50", (r) => (r.p50 === null ? null : duration(r.p50))],
	["P99", (r) => (r.p99 === null ? null : duration(r.p99))],
	["SLO", (r) => (r.slo === null ? null : duration(r.slo))],
	["batch", (r) => (r.batch ? count(r.batch) : null)],
	["memory", (r) => size(r.memory)],
	["limit", (r) => (r.hard ? size(r.hard) : null)],
	["soft limit", (r) => (r.soft ? size(r.soft) : null)],
	["most so far", (r) => (r.peak ? size(r.peak) : null)],
	["context and code", (r) => (r.overhead ? size(r.overhead) : null)],
	["held the GPU for", (r) => (r.held ? duration(r.held) : null)],
	["waited for", (r) => (r.waited ? duration(r.waited) : null)],
	["restarts", (r) => (r.restarts ? count(r.restarts) : null)],
	["steps", (r) => (r.steps ? count(r.steps) : null)],
	["weight", (r) => (r.weight === 1 ? null : String(r.weight))],
	["memory is kept", (r) => r.backend],
];

export class Detail {
	/* act(verb, job): a promise of {status, text}. */
	constructor(root, act) {
		this.root = root;
		this.act = act;
		this.job = null;
	}

	/* verbs: what the page may do, from the server. */
	show(job, verbs) {
		this.verbs = verbs;
		if (job === this.job) return;
		const hadFocus =
			this.root !== document.activeElement &&
			this.root.contains(document.activeElement);
		this.job = job;
		clearTimeout(this.timer);
		clearTimeout(this.askTimer);
		this.asked = null;
		if (hadFocus) this.root.focus({preventScroll: true});
		if (!job) {
			this.root.replaceChildren(
				make(
					"p",
					{class: "nothing"},
					"Select a job to see its past, and why it waits.",
				),
			);
			return;
		}
		this.title = make("h2");
		this.ids = make("p", {class: "ids"});
		this.actions = make("div", {class: "actions"});
		this.said = make("div", {class: "said", "aria-live": "polite", hidden: true});
		this.list = make("dl");
		this.charts = Object.values(charts).map((chart) => {
			const now = make("b"),
				canvas = make("canvas", {role: "img", "aria-label": chart.title});
			return {
				chart,
				now,
				canvas,
				root: make(
					"div",
					{class: "chart"},
					make("p", {}, chart.title, now),
					canvas,
				),
			};
		});
		this.root.replaceChildren(
			this.title,
			this.ids,
			this.actions,
			this.said,
			this.list,
			...this.charts.map((c) => c.root),
		);
		this.shownState = null;
		/* Not for each job over which the cursor hurries. */
		this.timer = setTimeout(() => this.run("explain"), 350);
	}

	/* Verbs that make sense now: of pause and resume one. */
	usable(verb) {
		const isPaused = this.job.row.state === "paused";
		if (this.job.endedAt !== null) return false;
		return verb.name === "pause" ? !isPaused : verb.name === "resume" ? isPaused : true;
	}

	showActions() {
		const state = this.job.row.state + this.job.endedAt;
		if (state === this.shownState) return;
		const focused = this.actions.contains(document.activeElement)
			? document.activeElement.dataset.verb
			: null;
		this.shownState = state;
		this.actions.replaceChildren(
			...this.verbs
				.filter((verb) => this.usable(verb))
				.map((verb) =>
					make(
						"button",
						{
							class: "button",
							type: "button",
							title: verb.help,
							"data-verb": verb.name,
							onclick: () => this.begin(verb),
						},
						make(
							"span",
							{},
							verb.name[0].toUpperCase() +
								verb.name.slice(1),
						),
						make("kbd", {}, verb.key),
					),
				),
		);
		this.showAsked();
		if (focused) this.focusOn(focused);
	}

	/* The button of the verb, or what has come in its place. */
	focusOn(name) {
		const verbs = [name, COUNTERPART[name]];
		const button = [...this.actions.children].find((b) => verbs.includes(b.dataset.verb));
		(button || this.root).focus({preventScroll: true});
	}

	/* A verb that cannot be undone has to be asked for twice. */
	begin(verb) {
		const isSure = this.asked === verb.name;
		clearTimeout(this.askTimer);
		this.asked = verb.asks && !isSure ? verb.name : null;
		this.showAsked();
		if (this.asked)
			this.askTimer = setTimeout(() => {
				this.asked = null;
				this.showAsked();
			}, ASK_MS);
		else this.run(verb.name);
	}

	showAsked() {
		for (const button of this.actions.children) {
			const name = button.dataset.verb;
			const isAsked = name === this.asked;
			button.classList.toggle("asks", isAsked);
			setText(
				button.firstChild,
				isAsked ? "Sure? Again" : name[0].toUpperCase() + name.slice(1),
			);
		}
	}

	async run(name) {
		const job = this.job;
		if (!job || job.endedAt !== null) return;
		const answer = await this.act(name, job.row.job);
		if (this.job !== job) return;
		this.said.hidden = !answer.text.trim();
		this.said.classList.toggle("bad", answer.status !== 0);
		this.said.replaceChildren(...this.answer(name, answer, job));
		/* What was done may change why it waits. */
		if (name !== "explain" && !answer.status)
			this.timer = setTimeout(() => this.run("explain"), 1200);
	}

	/* An explanation is a list of causes, each with what can be done; anything else is text. */
	answer(name, answer, job) {
		if (name !== "explain" || answer.status !== 0) return [answer.text.trim()];
		const processes = JSON.parse(answer.text);
		const own = processes.find((p) => p.pid === job.row.pid) || processes[0];
		return (own ? own.causes : []).map((cause) =>
			make(
				"p",
				{},
				make("b", {}, cause.id.replaceAll("_", " ")),
				` ${cause.text}`,
				cause.todo ? make("span", {class: "todo"}, cause.todo) : null,
			),
		);
	}

	/* The verb of that key, if it makes sense now. */
	press(key) {
		if (!this.job) return;
		const verb = this.verbs.find((v) => v.key === key && this.usable(v));
		if (verb) this.begin(verb);
	}

	draw(model, span) {
		const job = this.job;
		if (!job) return;
		const row = job.row;
		setText(this.title, row.name);
		setText(
			this.ids,
			`${row.job}, pid ${row.pid}, user ${row.uid}` +
				(job.endedAt === null ? "" : ", has ended"),
		);
		this.showActions();
		const shown = facts
			.map(([title, value]) => [title, value(row)])
			.filter(([, value]) => value !== null);
		const text = JSON.stringify(shown);
		if (this.list.dataset.text !== text) {
			this.list.dataset.text = text;
			this.list.replaceChildren(
				...shown.flatMap(([title, value]) => [
					make("dt", {}, title),
					make("dd", {}, value),
				]),
			);
		}
		for (const entry of this.charts) this.drawChart(entry, model, span);
	}

	drawChart({chart, now, canvas, root}, model, span) {
		const job = this.job,
			row = job.row,
			last = job.points[job.points.length - 1];
		root.hidden = Boolean(chart.when && !chart.when(row, job));
		if (root.hidden) return;
		const value = last ? chart.value(last) : null;
		setText(now, value === null || value === undefined ? "-" : chart.text(value));
		const at = begin(canvas);
		if (!at) return;
		const {g, width, height} = at,
			c = theme();
		const limit = chart.line ? chart.line(row) : null;
		const most = chart.max
			? chart.max(row)
			: 1.25 * Math.max(...job.points.map((p) => chart.value(p) || 0), limit || 0, 1e-6);
		const top = 5,
			bottom = height - 3;
		rule(g, 0, width, bottom, c.line);
		area(
			g,
			timeScale(model.now(), span, 0, width),
			job.points,
			chart.value,
			most,
			top,
			bottom,
			c[`j${job.colour}`],
			0.2,
		);
		if (limit)
			dashed(
				g,
				0,
				width,
				bottom - Math.min(limit / most, 1) * (bottom - top),
				c.bad,
			);
	}
}

/* -- events -- */

const BAD = new Set([
	"failed",
	"lost",
	"stuck",
	"refused",
	"unresponsive",
	"denied",
	"short",
	"rejected",
]);

function eventRow(event, model) {
	const kind = BAD.has(event.kind) ? "bad" : kindOf(event.kind) === "waiting" ? "wait" : "";
	const extra = [
		event.took === null ? null : duration(event.took),
		event.bytes ? size(event.bytes) : null,
		event.detail || null,
	]
		.filter(Boolean)
		.join(", ");
	const who = event.name || (event.pid ? String(event.pid) : event.job);
	return make(
		"li",
		{},
		make("time", {}, clock(event.wall)),
		make("span", {class: `kind ${kind}`}, event.kind),
		make(
			"span",
			{class: "who", title: `${who} ${extra}`},
			who,
			extra
				? make("span", {class: "quiet"}, `${who ? " · " : ""}${extra}`)
				: null,
		),
	);
}

export class Events {
	constructor(root, counter) {
		this.root = root;
		this.counter = counter;
		this.last = 0;
	}

	reset() {
		this.last = 0;
		this.root.replaceChildren();
	}

	/* New ones are put on top. */
	draw(model) {
		const fresh = model.events.filter((e) => e.number > this.last).slice(-EVENTS_SHOWN);
		if (!fresh.length) return;
		this.last = fresh[fresh.length - 1].number;
		this.root.prepend(...fresh.reverse().map((e) => eventRow(e, model)));
		while (this.root.children.length > EVENTS_SHOWN) this.root.lastChild.remove();
		setText(this.counter, `the last ${this.root.children.length}`);
	}
}
