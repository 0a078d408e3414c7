/* Values as text, in the words and units of `tandem top`. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function three(value) {
	return value >= 99.95
		? value.toFixed(0)
		: value >= 9.995
			? value.toFixed(1)
			: value.toFixed(2);
}

/* "12.5 GiB"; three significant digits. */
export function size(bytes) {
	let unit = 0;
	while (bytes >= 999.5 && unit < UNITS.length - 1) {
		bytes /= 1024;
		unit++;
	}
	return unit ? `${three(bytes)} ${UNITS[unit]}` : `${Math.round(bytes)} B`;
}

/* "340 ms", "1.25 s". */
export function duration(ms) {
	if (ms < 1) return `${Math.round(ms * 1000)} us`;
	if (ms < 999.5) return `${three(ms)} ms`;
	const s = ms / 1000;
	if (s < 60) return `${three(s)} s`;
	if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
	return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function share(part) {
	return `${Math.round(part * 100)}%`;
}

export function count(value) {
	return value >= 1e6
		? `${three(value / 1e6)} M`
		: value >= 1e4
			? `${three(value / 1e3)} k`
			: value < 9.95 && value % 1
				? value.toFixed(1)
				: String(Math.round(value));
}

const seconds = new Intl.DateTimeFormat([], {hour12: false, timeStyle: "medium"});

/* The wall clock, "14:03:07". */
export function clock(wall) {
	return seconds.format(wall);
}

/* A new element: make("p", {class: "quiet"}, "text", child). No text is ever read as HTML. */
export function make(name, attributes = {}, ...children) {
	const element = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) {
		if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
		else if (value !== undefined && value !== false)
			element.setAttribute(key, value === true ? "" : value);
	}
	element.append(...children.filter((c) => c !== null && c !== undefined));
	return element;
}

/* Writes only what has changed: the rest of the page stays as it is. */
export function setText(element, text) {
	if (element.textContent !== text) element.textContent = text;
}
