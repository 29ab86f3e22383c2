// `carousel record`: records a running pipeline into an MCAP file; executes the program that records.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "core/user_input.hpp"
#include "runs/client.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

struct record_arguments : client_arguments {
    std::vector<std::string> of;
    std::string out, compression;
    bool latest = false;
};

/// A ring of a run: all its names, and its readers.
struct known_ring {
    std::vector<std::string> names;
    std::vector<run::ps_link::reader> readers;
    [[nodiscard]] bool is(const std::string& name) const {
        return std::find(names.begin(), names.end(), name) != names.end();
    }
};

/// Empty if the run's supervisor does not reply.
std::vector<known_ring> rings_of(const run::record& run) {
    std::vector<known_ring> rings;
    try {
        const run::ps_answer ps = run::read_ps(run::client(run).ask(run::ps_request{}));
        for (const run::ps_link& l : ps.links.value_or(std::vector<run::ps_link>{})) {
            known_ring& ring = rings.emplace_back(known_ring{{l.stage}, l.readers});
            if (!l.output.empty())
                ring.names.push_back(l.stage.substr(0, l.stage.find('.')) + "." + l.output);
        }
    } catch (const shm_error&) {  // there is no supervisor now, so the recording program waits for one
    }
    return rings;
}

/// The ports whose inputs are exactly the named rings.
std::vector<std::string> ports_of(const std::vector<known_ring>& rings,
                                  const std::vector<std::string>& named) {
    const auto is_named = [&](const known_ring& ring) {
        return std::any_of(named.begin(), named.end(), [&](const std::string& n) { return ring.is(n); });
    };
    std::map<std::string, std::pair<std::size_t, std::size_t>> reads;  // by port: named, others
    for (const known_ring& ring : rings)
        for (const run::ps_link::reader& r : ring.readers)
            if (r.port) ++(is_named(ring) ? reads[r.stage].first : reads[r.stage].second);
    std::vector<std::string> ports;
    for (const auto& [port, count] : reads)
        if (count.first == named.size() && count.second == 0) ports.push_back(port);
    return ports;
}

/// Explains to a user who has named rings instead of a port how to read every frame of those rings.
std::string ways_to_every_frame(const record_arguments& a, const std::string& pipeline) {
    std::vector<std::string> quoted;
    for (const std::string& name : a.of) quoted.push_back(fmt::format("\"{}\"", name));
    const bool one = a.of.size() == 1;
    return fmt::format(
        "to record every frame of {4}, add [[stage]] name = \"archive\" run = \"port\" inputs = [{0}] to the "
        "pipeline file of {1}, start {1} again and run `carousel record archive --out {2} -p {1}`; or start "
        "{1} with `carousel run FILE --record {3} --record-to {2}`. To record only the newest frames of {5}, "
        "use --latest with this run",
        fmt::join(quoted, ", "), pipeline, a.out, fmt::join(a.of, ","), one ? "it" : "them",
        one ? "it" : "each");
}

// A port's program commits its frames one by one, so several ports at once would wait for each other. A port
// with several inputs delivers the frames of all its inputs, and so does a stage `record`. A ring without a
// port has no reader place that could make its producer wait, and none can be added to a running pipeline. If
// exactly one port reads exactly the named rings, that port is used.
void choose_what_can_be(record_arguments& a, const run::record& run) {
    for (auto at = a.of.begin(); at != a.of.end(); ++at)
        if (std::find(a.of.begin(), at, *at) != at)
            throw config_error(fmt::format("{} is named twice: name each ring only once", *at));
    if (a.latest) return;
    const std::vector<known_ring> rings = rings_of(run);
    const bool all_rings = std::all_of(a.of.begin(), a.of.end(), [&](const std::string& name) {
        return std::any_of(rings.begin(), rings.end(), [&](const known_ring& r) { return r.is(name); });
    });
    if (!all_rings && a.of.size() == 1) return;
    const std::vector<std::string> ports = all_rings ? ports_of(rings, a.of) : std::vector<std::string>();
    if (ports.size() == 1) {
        a.of = ports;
        return;
    }
    if (ports.size() > 1)
        throw config_error(fmt::format("{} have those rings as inputs: name one of these ports instead",
                                       fmt::join(ports, ", ")));
    if (a.of.size() > 1)
        throw config_error(
            fmt::format("every frame of several rings needs one port with all of them as inputs: {}",
                        ways_to_every_frame(a, run.name)));
    throw config_error(fmt::format(
        "{} is a ring of {}, not a reading port: every frame of a ring needs a port with it as input: {}",
        a.of.front(), run.name, ways_to_every_frame(a, run.name)));
}

[[noreturn]] void exec_recorder(record_arguments& a, const cli_environment& env) {
    const std::string program = program_of_ours("carousel-tape", executable_folder());
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    if (!a.out.ends_with(".mcap"))
        throw config_error(fmt::format("--out {}: expected the name of an .mcap file", a.out));
    choose_what_can_be(a, run);
    std::vector<std::string> words{program, run.name, absolute_path(a.out).string(), a.compression,
                                   a.latest ? "latest" : "port"};
    words.insert(words.end(), a.of.begin(), a.of.end());
    exec_program(words, env.out);
}

command_action add_record_command(const command_parts& p) {
    const auto a = std::make_shared<record_arguments>();
    add_client_options(p, *a);
    p.app
        .add_option("NAME", a->of,
                    "A port of the pipeline file that reads frames, or all rings that such a port reads; "
                    "with --latest: stages")
        ->required();
    p.app.add_option("--out", a->out, "The recording, an .mcap file")->required()->type_name("FILE");
    p.app.add_flag("--latest", a->latest,
                   "Record only the newest frames of each stage: this blocks no stage, and the missed frames "
                   "are counted");
    p.app.add_option("--compression", a->compression, "lz4, zstd or none [the first that is built in]")
        ->type_name("HOW");
    p.app.footer(
        "\n"
        "A port (run = \"port\", inputs = [...] in the pipeline file) gets every frame once, and the "
        "pipeline waits for the file; a port with several inputs gets the frames of several rings. Recording "
        "ends with the run or by Ctrl-C; `carousel-replay` plays the file.\n"
        "\n"
        "Examples:\n"
        "  carousel record archive --out run.mcap -p demo\n"
        "  carousel record fragment vertex --latest --out some.mcap");
    return [a](const common_words&, const cli_environment& env) -> int {
        read_wait(*a);
        exec_recorder(*a, env);
    };
}

}  // namespace

extern const command record_command{
    "record", "Record a running pipeline through a port, or only its newest frames", add_record_command};

}  // namespace carousel::supervisor
