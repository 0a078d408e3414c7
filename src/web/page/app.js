/* The page: the stream into the model, the model onto the screen, keys into verbs. */
import {clock, make, setText} from "/format.js";
import {Detail, Events} from "/detail.js";
import {Gpus, Tiles} from "/gpus.js";
import {Model, trouble} from "/model.js";
import {Table} from "/table.js";

const SPANS = [
	["1m", 60000],
	["5m", 300000],
	["15m", 900000],
];
const FRAME_MS = 250;

const $ = (id) => document.getElementById(id);
const model = new Model();
const tiles = new Tiles($("tiles"));
const table = new Table($("table"), () => showSelected());
const detail = new Detail($("detail"), act);
const events = new Events($("events"), $("event-count"));
const gpus = new Gpus(
	$("gpus"),
	(job) => {
		table.select(job.key);
	},
	$("tip"),
);
let span = Number(sessionStorage.getItem("span")) || SPANS[0][1];
let isFrozen = false;

/* -- verbs -- */

async function act(verb, job) {
	try {
		const response = await fetch("/do", {
			method: "POST",
			headers: {"Content-Type": "application/json"},
			body: JSON.stringify({verb, job}),
		});
		return response.ok
			? await response.json()
			: {status: response.status, text: await response.text()};
	} catch (problem) {
		return {status: 1, text: `tandem web does not answer: ${problem.message}`};
	}
}

/* -- drawing -- */

function selectedJob() {
	return (table.selected && model.jobs.get(table.selected)) || null;
}

function showSelected() {
	detail.show(selectedJob(), model.hello ? model.hello.verbs : []);
	detail.draw(model, span);
}

function drawMoving() {
	tiles.draw(model, span);
	gpus.draw(model, span, selectedJob());
	detail.draw(model, span);
}

function drawAll() {
	const shown = table.order.length,
		all = model.live.length;
	table.draw(model.live, model.others);
	showSelected();
	drawMoving();
	events.draw(model);
	setText(
		$("job-count"),
		table.filter ? `${shown} of ${all} rows` : `${all} row${all === 1 ? "" : "s"}`,
	);
	setText($("policy"), model.state.policy ? `policy ${model.state.policy}` : "");
	setText($("trouble"), trouble(model.live.map((job) => job.row)));
	if (!isFrozen) setText($("live-text"), model.wall ? clock(model.wall) : "waiting");
}

/* Between two rounds the pictures move on. */
setInterval(() => {
	if (
		!isFrozen &&
		!document.hidden &&
		model.time &&
		!matchMedia("(prefers-reduced-motion: reduce)").matches
	)
		requestAnimationFrame(drawMoving);
}, FRAME_MS);

function notice(text) {
	$("notice").hidden = !text;
	setText($("notice"), text);
	$("live").className = `live ${text ? "off" : "on"}`;
	if (text) setText($("live-text"), "no data");
}

/* -- the stream -- */

function listen() {
	const stream = new EventSource("/stream");
	const on = (name, take) =>
		stream.addEventListener(name, (e) => {
			take(JSON.parse(e.data));
			if (!isFrozen && (name === "round" || name === "state"))
				requestAnimationFrame(drawAll);
		});
	on("hello", (hello) => {
		model.takeHello(hello);
		table.setColumns(hello.columns);
		events.reset();
		setText($("host"), hello.host);
		document.title = `tandem ${hello.host}`;
	});
	on("state", (state) => {
		model.state = state;
		notice(state.why);
	});
	on("events", (rows) => model.takeEvents(rows));
	on("round", (round) => {
		model.takeRound(round);
		if (!model.state.why) notice("");
	});
	stream.onerror = () => {
		notice(
			stream.readyState === EventSource.CLOSED
				? "tandem web refused: open the address that it printed."
				: "tandem web has ended, or the connection is lost. Trying again.",
		);
	};
}

/* -- controls -- */

function setSpan(ms) {
	span = ms;
	sessionStorage.setItem("span", String(ms));
	for (const button of $("spans").children)
		button.setAttribute("aria-pressed", String(Number(button.value) === ms));
	drawMoving();
}

function setFrozen(frozen) {
	isFrozen = frozen;
	$("freeze").setAttribute("aria-pressed", String(frozen));
	setText($("freeze"), frozen ? "Frozen" : "Freeze");
	if (!frozen) drawAll();
}

const keys = [
	["j k ↑ ↓", "move the cursor; Page Up and Page Down by a page, Home and End"],
	["Tab", "goes on to the events and to the job, which the arrows scroll then"],
	["e Enter", "explain why the job runs or waits"],
	["p", "pause the job, or let it go on"],
	["x R", "evict the job, or restart it; pressed twice"],
	["/", "filter by id, name, class, state or pid; Escape shows all"],
	["s S", "sort by the next column, or the one before; r reverses"],
	["1 2 3", "how much time the pictures show"],
	["Space", "freeze the page, or let it go on"],
];

function showHelp() {
	const dialog = $("help");
	dialog.replaceChildren(
		make("h2", {}, "Keys"),
		make(
			"dl",
			{},
			...keys.flatMap(([names, what]) => [
				make("dt", {}, ...names.split(" ").map((n) => make("kbd", {}, n))),
				make("dd", {}, what),
			]),
		),
		make(
			"form",
			{method: "dialog"},
			make("button", {class: "button", value: "close"}, "Close"),
		),
	);
	dialog.showModal();
}

/* Where the focus is in these, the browser scrolls them. */
const SCROLLED = "#events, #detail";
const SCROLLS = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"]);

const pressed = {
	j: () => table.move(1),
	k: () => table.move(-1),
	ArrowDown: () => table.move(1),
	ArrowUp: () => table.move(-1),
	PageDown: () => table.move(table.pageRows),
	PageUp: () => table.move(-table.pageRows),
	Home: () => table.move(-1e9),
	End: () => table.move(1e9),
	Enter: () => detail.press("e"),
	"/": () => $("filter").focus(),
	s: () => table.sortNext(1),
	S: () => table.sortNext(-1),
	r: () => table.sortBy(table.sort),
	" ": () => setFrozen(!isFrozen),
	"?": showHelp,
	h: showHelp,
	Escape: () => setFilter(""),
	1: () => setSpan(SPANS[0][1]),
	2: () => setSpan(SPANS[1][1]),
	3: () => setSpan(SPANS[2][1]),
};

function setFilter(text) {
	$("filter").value = text;
	table.filter = text;
	drawAll();
}

document.addEventListener("keydown", (e) => {
	const isTyping = e.target === $("filter"),
		isButton = e.target.tagName === "BUTTON" && (e.key === "Enter" || e.key === " ");
	if (e.ctrlKey || e.metaKey || e.altKey || $("help").open || isButton) return;
	if (isTyping) {
		if (e.key === "Escape" || e.key === "Enter") {
			if (e.key === "Escape") setFilter("");
			$("table").focus();
		}
		return;
	}
	if (SCROLLS.has(e.key) && e.target.closest(SCROLLED)) return;
	if (pressed[e.key]) {
		e.preventDefault();
		pressed[e.key]();
	} else {
		detail.press(e.key);
	}
});

$("filter").addEventListener("input", (e) => setFilter(e.target.value));
$("freeze").addEventListener("click", () => setFrozen(!isFrozen));
$("help-open").addEventListener("click", showHelp);
for (const [name, ms] of SPANS)
	$("spans").append(
		make("button", {type: "button", value: ms, onclick: () => setSpan(ms)}, name),
	);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
	requestAnimationFrame(drawAll),
);
addEventListener("resize", () => requestAnimationFrame(drawMoving));

/* The token has become a cookie: it need not be seen, nor kept in the history. */
if (location.search) history.replaceState(null, "", "/");
setSpan(span);
showSelected();
notice("");
listen();
