/*
 * All that the page knows: rounds and events in, jobs with their past out. It draws nothing.
 *
 * Times are ms of the daemon's clock. A job's row of one GPU has segments, in each of which it was
 * in one kind of state: events say when they begin to a ms, rounds say what no event does.
 */

export const KEPT_MS = 15 * 60 * 1000;
const COLOURS = 8;
const EVENTS_KEPT = 500;
/* Of all jobs together: many jobs have a shorter past each. */
const POINTS_KEPT = 150000;

const KIND_OF_STATE = {
	running: "running",
	draining: "moving",
	filling: "moving",
	waiting: "waiting",
	idle: "idle",
	paused: "paused",
	stopped: "paused",
	unresponsive: "bad",
	failed: "bad",
	ungoverned: "bad",
};
const KIND_OF_EVENT = {
	opened: "running",
	filling: "moving",
	draining: "moving",
	drained: "waiting",
	waiting: "waiting",
	stopped: "paused",
	failed: "bad",
};

export function kindOf(state) {
	return KIND_OF_STATE[state] || "idle";
}

/* Does the P99 of a service exceed its objective? */
export function isLate(row) {
	return row.p99 !== null && row.slo !== null && row.p99 > row.slo;
}

/* "2 failed, 1 late", or "" where nobody is. */
export function trouble(rows) {
	const failed = rows.filter((row) => row.state === "failed").length,
		late = rows.filter(isLate).length;
	return [failed ? `${failed} failed` : "", late ? `${late} late` : ""]
		.filter(Boolean)
		.join(", ");
}

function toObject(names, row) {
	const o = {};
	for (let i = 0; i < names.length; i++) o[names[i]] = row[i];
	return o;
}

class Job {
	constructor(key, row, colour) {
		this.key = key;
		this.row = row;
		this.colour = colour;
		this.segments = [];
		this.points = [];
		this.endedAt = null;
	}

	/* From t on it is of that kind. */
	enter(t, kind) {
		const last = this.segments[this.segments.length - 1];
		if (last && last.kind === kind) {
			/* A round has told it, and the event tells since when. */
			const before = this.segments[this.segments.length - 2];
			if (t < last.from && (!before || before.from < t)) {
				last.from = t;
				if (before) before.to = t;
			}
			return;
		}
		if (last && t < last.from) return;
		if (last) last.to = t;
		this.segments.push({from: t, to: Infinity, kind});
	}

	end(t) {
		if (this.endedAt !== null) return;
		this.endedAt = t;
		const last = this.segments[this.segments.length - 1];
		if (last && last.to === Infinity) last.to = Math.max(t, last.from);
	}

	prune(oldest, pointsMax) {
		let n = 0;
		while (n < this.segments.length && this.segments[n].to < oldest) n++;
		this.segments.splice(0, n);
		n = Math.max(0, this.points.length - pointsMax);
		while (n < this.points.length && this.points[n].t < oldest) n++;
		this.points.splice(0, n);
	}
}

export class Model {
	constructor() {
		this.reset();
	}

	reset() {
		this.hello = null;
		this.state = {policy: "", hostLimit: "", why: ""};
		this.gpus = []; /* of the last round, each with its past: [{t, busy, device}] */
		this.others = [];
		this.jobs = new Map(); /* "pid@gpu": Job; those that have ended, too, for a while */
		this.live = []; /* Jobs of the last round, in its order */
		this.events = []; /* the newest last */
		this.early = []; /* events of processes that no round has shown yet */
		this.colours = new Map(); /* id of a job: number of its colour */
		this.time = 0;
		this.wall = 0;
		this.arrived = 0;
	}

	takeHello(hello) {
		this.reset();
		this.hello = hello;
		this.past = new Map(
			Object.entries(hello.past).map(([uuid, rows]) => [
				uuid,
				rows.map(([t, busy, device, demanded]) => ({
					t,
					busy,
					device,
					demanded,
				})),
			]),
		);
	}

	/* The daemon's clock now. */
	now() {
		return this.time
			? this.time +
					Math.min(
						performance.now() - this.arrived,
						3 * this.hello.period,
					)
			: 0;
	}

	wallOf(t) {
		return this.wall - this.time + t;
	}

	colourOf(id) {
		if (!this.colours.has(id)) this.colours.set(id, this.colours.size % COLOURS);
		return this.colours.get(id);
	}

	takeRound(round) {
		const fields = this.hello.fields;
		this.time = round.time;
		this.wall = round.wall;
		this.arrived = performance.now();
		this.others = round.others.map((r) => toObject(fields.others, r));
		this.takeGpus(round.gpus.map((r) => toObject(fields.gpu, r)));
		this.takeJobs(round.jobs.map((r) => toObject(fields.job, r)));
	}

	takeGpus(rows) {
		for (const gpu of rows) {
			const past = this.past.get(gpu.uuid) || [];
			this.past.set(gpu.uuid, past);
			gpu.past = past;
			if (!past.length || past[past.length - 1].t < this.time)
				past.push({
					t: this.time,
					busy: gpu.busy,
					device: gpu.resident,
					demanded: gpu.demanded,
				});
			while (past[0].t < this.time - KEPT_MS) past.shift();
		}
		this.gpus = rows;
	}

	takeJobs(rows) {
		const seen = new Set();
		const live = [];
		for (const row of rows) {
			let key = `${row.pid}@${row.gpu}`;
			while (seen.has(key)) key += "'";
			seen.add(key);
			let job = this.jobs.get(key);
			if (!job || job.endedAt !== null || job.row.job !== row.job) {
				job = new Job(key, row, this.colourOf(row.job));
				this.jobs.set(key, job);
				this.replay(job);
			}
			job.row = row;
			job.enter(this.time, kindOf(row.state));
			job.points.push({
				t: this.time,
				device: row.device,
				host: row.host,
				time: row.time,
				step: row.step,
				p99: row.p99,
				rate: row.rate,
			});
			live.push(job);
		}
		const pointsMax = POINTS_KEPT / Math.max(this.jobs.size, 1);
		for (const [key, job] of this.jobs) {
			if (!seen.has(key)) job.end(this.time);
			job.prune(this.time - KEPT_MS, pointsMax);
			if (job.endedAt !== null && job.endedAt < this.time - KEPT_MS)
				this.jobs.delete(key);
		}
		/* A GPU without NVML counts as busy while a job may use it. */
		for (const gpu of this.gpus)
			if (gpu.busy === null) {
				const held = live
					.filter(
						(j) =>
							j.row.gpu === gpu.index &&
							j.row.time !== null,
					)
					.reduce((a, j) => a + j.row.time, 0);
				gpu.past[gpu.past.length - 1].busy = gpu.busy = Math.min(held, 1);
			}
		this.live = live;
	}

	takeEvents(rows) {
		for (const row of rows) {
			const event = toObject(this.hello.fields.event, row);
			this.events.push(event);
			if (!this.apply(event, (job) => job.row.pid === event.pid))
				this.early.push(event);
		}
		this.events.splice(0, this.events.length - EVENTS_KEPT);
		this.early.splice(0, this.early.length - EVENTS_KEPT);
	}

	/* True: some job was it about. */
	apply(event, isMeant) {
		let found = false;
		if (!event.pid) return true;
		for (const job of this.jobs.values()) {
			if (job.endedAt !== null || !isMeant(job)) continue;
			found = true;
			if (event.kind === "left") job.end(event.time);
			else if (KIND_OF_EVENT[event.kind])
				job.enter(event.time, KIND_OF_EVENT[event.kind]);
		}
		return found;
	}

	/* The events of a process from before its first round. */
	replay(job) {
		for (const event of this.early)
			if (
				event.pid === job.row.pid &&
				event.job === job.row.job &&
				KIND_OF_EVENT[event.kind]
			)
				job.enter(event.time, KIND_OF_EVENT[event.kind]);
		/* Where its events are too old to be known: it has had the GPU for so long. */
		if (!job.segments.length && job.row.held)
			job.enter(this.time - job.row.held, kindOf(job.row.state));
	}

	/* Jobs of a GPU that have something to show since then. */
	jobsOf(gpu, since) {
		const found = [];
		for (const job of this.jobs.values())
			if (
				job.row.gpu === gpu.index &&
				(job.endedAt === null || job.endedAt > since)
			)
				found.push(job);
		return found;
	}
}
