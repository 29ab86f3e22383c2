// Reads a recording with @mcap/core, an MCAP library that isn't ours, by its index and its check sums; prints what it found as JSON.
// The last message of each topic is read by protobufjs, by the description that the file has of it: "last"; "log_time" is its time.
// "--there" in place of a file: exit code 77, with a sentence, where a library is not there (NODE_PATH says where).
function library(name) {
  try {
    return require(name);
  } catch (e) {
    console.error(`${name} is not there (npm install @mcap/core protobufjs, NODE_PATH=.../node_modules): ${e.code ?? e}`);
    process.exit(77);
  }
}
const core = library("@mcap/core"), protobuf = library("protobufjs");
library("protobufjs/ext/descriptor");
if (process.argv[2] === "--there") process.exit(0);
const fs = require("node:fs/promises");

function read(schema, data) {
  const root = protobuf.Root.fromDescriptor(schema.data);
  root.resolveAll();
  const type = root.lookupType(schema.name);
  return type.toObject(type.decode(data), { longs: String, bytes: String, arrays: true });
}

async function main() {
  const file = await fs.open(process.argv[2]);
  const readable = {
    size: async () => BigInt((await file.stat()).size),
    read: async (offset, length) => {
      const bytes = new Uint8Array(Number(length));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, Number(offset));
      if (bytesRead !== bytes.length) throw new Error(`the file ends at ${offset}`);
      return bytes;
    },
  };
  const reader = await core.McapIndexedReader.Initialize({ readable });
  const found = { messages: 0, topics: {}, schemas: [...reader.schemasById.values()].map((s) => s.name).sort(),
                  metadata: {}, chunks: reader.chunkIndexes.length, last: {}, log_time: {} };
  const last = {};
  for await (const m of reader.readMessages()) {
    const topic = reader.channelsById.get(m.channelId).topic;
    found.topics[topic] = (found.topics[topic] ?? 0) + 1;
    if (m.sequence !== found.topics[topic] - 1) throw new Error(`${topic}: message ${m.sequence} out of order`);
    last[topic] = m;
    ++found.messages;
  }
  for (const [topic, m] of Object.entries(last)) {
    found.log_time[topic] = String(m.logTime);
    found.last[topic] = read(reader.schemasById.get(reader.channelsById.get(m.channelId).schemaId), m.data);
  }
  for await (const m of reader.readMetadata()) found.metadata[m.name] = Object.fromEntries(m.metadata);
  console.log(JSON.stringify(found));
}
main().catch((e) => {
  console.error(String(e));
  process.exit(1);
});
