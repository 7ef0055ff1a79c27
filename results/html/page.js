// The page is complete without this script. It sorts tables and hides strategies. The live page calls arrange for each
// frame, so that it keeps the reader's choices.
// The order of each table, and the hidden strategies. document.write declares them again, which only var permits.
var chosen = { order: new Map(), hidden: new Set() };
var scales = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, k: 1e3, M: 1e6, G: 1e9, KB: 1e3, MB: 1e6, GB: 1e9 };

// figure returns the number at the beginning of a cell in its base unit, such as seconds; NaN if there is none.
function figure(text) {
	const found = /^(?:done, |[≥~<\s])*([−-]?)([\d.]+) ?([a-zµ]*)/i.exec(text);
	return found ? Number(found[2]) * (scales[found[3]] ?? 1) * (found[1] ? -1 : 1) : NaN;
}

function compare(a, b, direction) {
	const [x, y] = [figure(a), figure(b)];
	if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1; // unknown figures come last
	return direction * (x - y || (a === b ? 0 : a.localeCompare(b, "en", { numeric: true })));
}

function sort(table, column, direction) {
	const body = table.tBodies[0], text = row => row.cells[column].textContent;
	body.append(...[...body.rows].sort((a, b) => compare(text(a), text(b), direction)));
	[...table.tHead.rows[0].cells].forEach((head, i) => {
		if (i === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
		else head.removeAttribute("aria-sort");
	});
}

// hide hides the chosen strategies by a style sheet, so that they stay hidden in later frames.
function hide() {
	document.querySelector("#hidden").textContent =
		[...chosen.hidden].map(style => `@media screen { figure .${style} { visibility: hidden } }`).join("");
}

function button(around) {
	const made = document.createElement("button");
	made.append(...around.childNodes);
	around.append(made);
	return made;
}

// sortable returns whether a table has several rows, each with a name. In some documents a row without a name continues
// the row above it.
function sortable(table) {
	const rows = [...table.tBodies[0].rows];
	return rows.length > 1 && rows.every(row => row.cells[0].textContent);
}

function arrange(root) {
	root.querySelectorAll("table").forEach((table, i) => {
		table.dataset.number = i;
		if (!sortable(table)) return;
		for (const head of table.tHead.rows[0].cells)
			if (head.textContent && !head.querySelector("button")) button(head);
		const order = chosen.order.get(String(i));
		if (order && table.tHead.rows[0].cells[order.column]) sort(table, order.column, order.direction);
	});
	for (const item of root.querySelectorAll(".legend li")) {
		const made = item.querySelector("button") ?? button(item);
		made.setAttribute("aria-pressed", !chosen.hidden.has(item.dataset.style));
	}
}

document.addEventListener("click", event => {
	const head = event.target.closest("th button")?.parentElement, item = event.target.closest(".legend button");
	if (head) {
		const table = head.closest("table"), direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
		chosen.order.set(table.dataset.number, { column: head.cellIndex, direction });
		sort(table, head.cellIndex, direction);
	} else if (item) {
		const style = item.parentElement.dataset.style;
		if (!chosen.hidden.delete(style)) chosen.hidden.add(style);
		hide();
		arrange(document);
	}
});
document.head.append(Object.assign(document.createElement("style"), { id: "hidden" }));
arrange(document);
