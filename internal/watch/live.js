const stream = new EventSource("events");

// merge changes the element old so that it equals now. It keeps unchanged nodes, and so the focus, the scroll position,
// and the status, which a screen reader speaks only when it changes.
function merge(old, now) {
	if (old.isEqualNode(now)) return;
	if (old.nodeName !== now.nodeName || old.nodeType !== Node.ELEMENT_NODE) {
		old.replaceWith(now);
		return;
	}
	for (const { name } of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
	for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
	const parts = [...now.childNodes];
	while (old.childNodes.length > parts.length) old.lastChild.remove();
	parts.forEach((part, i) => old.childNodes[i] ? merge(old.childNodes[i], part) : old.append(part));
}

stream.addEventListener("seen", event => {
	const now = document.createElement("main");
	now.innerHTML = JSON.parse(event.data);
	arrange(now);
	merge(document.querySelector("main"), now);
});
stream.addEventListener("report", event => {
	stream.close();
	document.open();
	document.write(JSON.parse(event.data));
	document.close();
});
stream.addEventListener("error", () => {
	document.querySelector("#status").textContent = "lockbench no longer responds.";
});
