/*
 * The table of jobs. Its columns are those of `tandem top`. Only rows that are seen are in the
 * page, so that a thousand cost no more than twenty.
 */
import {count, duration, make, setText, share, size} from "/format.js";
import {isLate, kindOf} from "/model.js";

const ROW = 32,
	BESIDE = 6;

/* How the values of a kind of column look (view/jobs.def). What is not here is text. */
const kinds = {
	number: String,
	count,
	share,
	size,
	time: duration,
	limit: (v, r) => (r.soft === v ? `~${size(v)}` : size(v)),
	tail: (v, r) => (isLate(r) ? `!${duration(v)}` : duration(v)),
	moved: (_, r) => `${size(r.in || 0)}/${size(r.out || 0)}`,
};

/* Cells with a bar: the part of it that is filled. */
const meters = {
	time: (r) => r.time,
	device: (r) => (r.limit ? r.device / r.limit : null),
};

function compare(a, b) {
	if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
	if (b === null || b === undefined) return 1;
	return typeof a === "string" ? a.localeCompare(b) : a - b;
}

export class Table {
	constructor(root, onSelect) {
		this.root = root;
		this.onSelect = onSelect;
		this.sort = "gpu";
		this.descending = false;
		this.filter = "";
		this.selected = null; /* key of a Job */
		this.jobs = [];
		this.order = [];
		this.others = [];
		root.addEventListener("scroll", () => this.fill());
		root.addEventListener("click", (e) => {
			const row = e.target.closest("tr[data-key]");
			if (row) this.select(row.dataset.key);
		});
		new ResizeObserver(() => this.layOut()).observe(root);
	}

	/* The columns, once they are known. Some are left out until a row has something in them. */
	setColumns(columns) {
		this.allColumns = columns;
		this.missing = columns.filter((c) => c.some);
		this.layOut();
	}

	/* Columns that have something to show now. */
	mark() {
		const before = this.missing.length;
		this.missing = this.missing.filter(
			({id}) => !this.jobs.some((j) => j.row[id] !== null),
		);
		if (this.missing.length !== before) this.layOut();
	}

	/* As many columns as there is room for, by rank, as `tandem top` does it. */
	layOut() {
		if (!this.allColumns) return;
		this.rank = Math.max(...this.allColumns.map((c) => c.rank));
		this.showColumns();
		this.fit();
	}

	/* Takes columns away while the table is wider than its place. */
	fit() {
		while (
			this.rank > 0 &&
			this.body.parentElement.offsetWidth > this.root.clientWidth
		) {
			this.rank--;
			this.showColumns();
		}
	}

	showColumns() {
		const columns = (this.columns = this.allColumns.filter(
			(c) => c.rank <= this.rank && !this.missing.includes(c),
		));
		this.titles = columns.map((column) => {
			const mark = make("span", {"aria-hidden": "true"});
			const button = make(
				"button",
				{
					type: "button",
					tabindex: "-1",
					title: column.help,
					onclick: () => this.sortBy(column.id),
				},
				column.title,
				mark,
			);
			return {
				column,
				mark,
				cell: make(
					"th",
					{scope: "col", class: column.left ? "left" : undefined},
					button,
				),
			};
		});
		this.above = make(
			"tr",
			{class: "pad", "aria-hidden": "true"},
			make("td", {colspan: columns.length}),
		);
		this.below = this.above.cloneNode(true);
		this.body = make("tbody", {}, this.above, this.below);
		this.root.replaceChildren(
			make(
				"table",
				{role: "presentation"},
				make(
					"thead",
					{},
					make("tr", {}, ...this.titles.map((t) => t.cell)),
				),
				this.body,
			),
		);
		this.rows = new Map();
		this.showSort();
		this.fill();
	}

	sortBy(id) {
		if (this.sort === id) this.descending = !this.descending;
		else
			this.descending =
				typeof (this.jobs.length ? this.jobs[0].row[id] : "") !==
					"string" && id !== "gpu";
		this.sort = id;
		this.showSort();
		this.draw(this.jobs, this.others);
	}

	/* The next column, or the one before. */
	sortNext(by) {
		const at = this.columns.findIndex((c) => c.id === this.sort),
			count = this.columns.length;
		this.sort = this.columns[(at + by + count) % count].id;
		this.showSort();
		this.draw(this.jobs, this.others);
	}

	showSort() {
		for (const {column, mark, cell} of this.titles || []) {
			const isIt = column.id === this.sort;
			setText(mark, isIt ? (this.descending ? " ▾" : " ▴") : "");
			cell.setAttribute(
				"aria-sort",
				isIt ? (this.descending ? "descending" : "ascending") : "none",
			);
		}
	}

	matches(row) {
		const text = this.filter.toLowerCase();
		return (
			!text ||
			[row.job, row.name, row.class, row.state, String(row.pid)].some((v) =>
				v.toLowerCase().includes(text),
			)
		);
	}

	draw(jobs, others) {
		const sign = this.descending ? -1 : 1;
		this.jobs = jobs;
		this.others = others;
		if (!this.columns) return;
		this.mark();
		this.order = jobs
			.filter((j) => this.matches(j.row))
			.sort(
				(a, b) =>
					sign *
						compare(
							a.row[this.sort],
							b.row[this.sort],
						) ||
					a.row.gpu - b.row.gpu ||
					a.row.pid - b.row.pid,
			);
		this.fill();
		this.fit();
	}

	fill() {
		if (!this.columns) return;
		const total = this.order.length + this.others.length;
		const first = Math.max(
			0,
			Math.min(Math.floor(this.root.scrollTop / ROW) - BESIDE, total - 1),
		);
		const last = Math.min(
			total,
			first + Math.ceil(this.root.clientHeight / ROW) + 2 * BESIDE,
		);
		const rows = new Map();
		const shown = [];
		for (let i = first; i < last; i++) {
			const job = this.order[i];
			const key = job ? job.key : `others ${i - this.order.length}`;
			const row = this.rows.get(key) || this.makeRow(key, job);
			if (job) this.fillRow(row, job);
			else this.fillOthers(row, this.others[i - this.order.length]);
			row.element.setAttribute("aria-selected", String(key === this.selected));
			rows.set(key, row);
			shown.push(row.element);
		}
		this.above.firstChild.style.height = `${first * ROW}px`;
		this.below.firstChild.style.height = `${(total - last) * ROW}px`;
		this.rows = rows;
		if (!total) shown.push(this.emptyRow());
		this.place(shown);
	}

	/* Rows that stay are not touched: a click on one would be lost. */
	place(shown) {
		let at = this.above.nextSibling;
		for (const element of shown) {
			if (at === element) {
				at = at.nextSibling;
				continue;
			}
			this.body.insertBefore(element, at);
		}
		while (at !== this.below) {
			const next = at.nextSibling;
			at.remove();
			at = next;
		}
	}

	emptyRow() {
		return make(
			"tr",
			{class: "empty"},
			make(
				"td",
				{colspan: this.columns.length},
				this.filter
					? "no job matches the filter"
					: "no job uses a GPU through tandem",
			),
		);
	}

	makeRow(key, job) {
		const row = {
			cells: {},
			element: make("tr", {
				role: "row",
				class: job ? undefined : "dim",
				"data-key": job ? key : undefined,
			}),
		};
		for (const column of this.columns) {
			const cell = make("td", {
				role: "gridcell",
				class: [column.left ? "left" : "", column.id].join(" ").trim(),
			});
			row.cells[column.id] = cell;
			row.element.append(cell);
		}
		return row;
	}

	fillRow(row, job) {
		for (const column of this.columns) {
			const cell = row.cells[column.id];
			if (column.id === "state") this.fillState(cell, job.row.state);
			else if (column.id === "name") this.fillName(cell, job);
			else this.fillCell(cell, column, job.row);
		}
	}

	fillState(cell, state) {
		if (!cell.firstChild) cell.append(make("span", {}));
		setText(cell.firstChild, state);
		cell.firstChild.className = `state-is ${kindOf(state)}`;
	}

	fillName(cell, job) {
		if (!cell.firstChild) cell.append(make("span", {class: "dot"}), make("span", {}));
		cell.firstChild.style.background = `var(--j${job.colour})`;
		setText(cell.lastChild, job.row.name);
		cell.title = job.row.name;
	}

	fillCell(cell, {id, kind}, row) {
		const look = kinds[kind] || String,
			value = row[id];
		const text = value === null || value === "" ? "-" : look(value, row);
		const meter = meters[id],
			part = meter ? meter(row) : null;
		cell.classList.toggle("none", text === "-");
		cell.classList.toggle("late", id === "p99" && isLate(row));
		if (!meter) {
			setText(cell, text);
			return;
		}
		if (!cell.firstChild) cell.append(make("span", {}, make("span", {}), make("i")));
		const span = cell.firstChild,
			bar = span.lastChild;
		setText(span.firstChild, text);
		span.className = part === null ? "" : "meter";
		bar.style.width = `${Math.min(part || 0, 1) * 100}%`;
		bar.hidden = part === null;
		bar.className = id !== "time" && part > 0.97 ? "full" : "";
	}

	fillOthers(row, others) {
		for (const {id} of this.columns)
			setText(
				row.cells[id],
				{
					name: `(${others.processes} of others)`,
					gpu: others.gpu === null ? "-" : String(others.gpu),
					memory: size(others.demanded),
					device: size(others.device),
					host: others.host ? size(others.host) : "-",
				}[id] || "",
			);
	}

	/* -- the cursor -- */

	select(key) {
		this.selected = key;
		this.fill();
		this.onSelect(key);
	}

	move(by) {
		if (!this.order.length) return;
		const at = this.order.findIndex((j) => j.key === this.selected);
		const to = at < 0 ? 0 : Math.max(0, Math.min(at + by, this.order.length - 1));
		const top = to * ROW,
			room = this.root.clientHeight - ROW;
		if (top < this.root.scrollTop) this.root.scrollTop = top;
		else if (top + ROW > this.root.scrollTop + room)
			this.root.scrollTop = top + ROW - room;
		this.select(this.order[to].key);
	}

	get pageRows() {
		return Math.max(1, Math.floor(this.root.clientHeight / ROW) - 2);
	}
}
