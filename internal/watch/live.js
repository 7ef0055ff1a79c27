const stream = new EventSource("events");
stream.addEventListener("seen", event => { document.querySelector("main").innerHTML = JSON.parse(event.data); });
stream.addEventListener("report", event => {
	stream.close();
	document.open();
	document.write(JSON.parse(event.data));
	document.close();
});
stream.addEventListener("error", () => { document.querySelector("#status").textContent = "lockbench does not answer."; });
