// The search of pages that are opened as files (file://), where a browser neither fetches the index nor starts a worker by its address.
if (location.protocol === "file:") {
  window.__search = { index: Promise.resolve(JSON.parse(INDEX_TEXT)) };
  const FromAddress = window.Worker;
  window.Worker = function () {
    return new FromAddress(URL.createObjectURL(new Blob([WORKER_TEXT], { type: "text/javascript" })));
  };
}
