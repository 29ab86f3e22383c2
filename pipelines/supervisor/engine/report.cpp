#include "supervisor/engine/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "control/ps_message.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"
#include "ring/words.hpp"
#include "shm/block_guard.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "telemetry/depth.hpp"
#include "telemetry/histogram.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

f64 in_ms(u64 ns) { return static_cast<f64>(ns) / 1e6; }

json latency_json(const shm::word* buckets, const shm::word* longest) {
    json j{{"p50", telemetry::percentile_ms(buckets, 0.5)}, {"p99", telemetry::percentile_ms(buckets, 0.99)}};
    if (longest != nullptr) j["max"] = in_ms(ring::load(*longest));
    return j;
}

/// Returns the depth that the last process of a seat has reported; null: the process has reported none.
json depth_json(u64 word) {
    const auto d = telemetry::depth_view::of(word);
    if (d.why == telemetry::depth_reason::unknown) return nullptr;
    return {{"in_flight", d.lanes},
            {"window", d.window == 0 ? json() : json(d.window)},
            {"work_ms", d.work_ns == 0 ? json() : json(in_ms(d.work_ns))},
            {"reason", d.reason()},
            {"graphs", d.graphs},
            {"reach", d.reach == telemetry::reach_state::none ? json() : json(telemetry::name_of(d.reach))}};
}

/// Returns the counts of the stage's turns on a GPU; null: the stage has taken no turn.
json turns_json(const shm::stage_counters& n) {
    const u64 taken = ring::load(n.turns);
    if (taken == 0) return {};
    return {{"taken", taken}, {"taken_over", ring::load(n.late_turns)}};
}

/// Returns the figures that the stage has written in this run as an end of a link
/// (stages/hosts/link_end.hpp); null: the stage is not an end of a link.
json link_json(const std::string& directory, const std::string& stage, const std::string& run_id) {
    json stored = read_json_file(directory + "/figures-" + stage);
    if (!stored.is_object() || stored.value("run", "") != run_id) return nullptr;
    stored.erase("run");
    return stored;
}

json stage_json(const report_input& in, u32 stage) {
    const stage_setup& st = in.setup->stages[stage];
    const shm::stage_counters& n = in.control->stage[stage].counters;
    json pids = json::array();
    u64 restarts = 0;
    for (const auto& s : *in.seats) {
        if (s->stage != stage) continue;
        restarts += s->restarts;
        for (const i32 pid : s->pids) pids.push_back(pid);
    }
    const auto share = [&](f64 telemetry::stage_shares::*of) {
        return stage < in.shares.size() ? json(in.shares[stage].*of) : json();
    };
    json depths = json::array();
    for (const auto& s : *in.seats)
        if (s->stage == stage) depths.push_back(depth_json(s->depth));
    json j{{"name", st.spec.name},
           {"device", st.device_name},
           {"in_flight", in.control->stage[stage].in_flight},
           {"window", st.has_output() && stage < in.control->stages &&
                              in.control->stage[stage].output_link[0] < shm::max_links
                          ? json(in.control->link[in.control->stage[stage].output_link[0]].window)
                          : json()},
           {"depth", depths},
           {"pids", pids},
           {"restarts", restarts},
           {"frames", ring::load(n.frames)},
           {"in_flight_high_water", ring::load(n.in_flight_high_water)},
           {"latency_ms", latency_json(n.latency, &n.latency_max_ns)},
           {"handover_ms", latency_json(n.handover, nullptr)},
           {"busy", share(&telemetry::stage_shares::busy)},
           {"wait_input", share(&telemetry::stage_shares::wait_input)},
           {"wait_output", share(&telemetry::stage_shares::wait_output)},
           {"wait_own", share(&telemetry::stage_shares::wait_own)},
           {"wait_turn", share(&telemetry::stage_shares::wait_turn)},
           {"turns", turns_json(n)},
           {"helped", ring::load(n.helped)},
           {"revoked_commits", ring::load(n.revoked_commits)},
           {"tombstones", ring::load(n.tombstones)},
           {"torn", ring::load(n.torn)}};
    if (json carried = carried_json(st, *in.control, stage); !carried.is_null())
        j["last_frame_carried"] = std::move(carried);
    for (u32 o = 1; o < std::min(st.outputs(), shm::max_outputs); ++o) {
        const u32 link = in.control->stage[stage].output_link[o];
        if (link >= shm::max_links) continue;
        j["more_outputs"].push_back({{"ring", st.ring_name(o)},
                                     {"window", in.control->link[link].window},
                                     {"last_frame_carried", carried_json(st, *in.control, stage, o)}});
    }
    if (json link = link_json(in.setup->directory, st.spec.name, in.control->run_id); !link.is_null())
        j["link"] = std::move(link);
    if (st.is_sink()) j["end_to_end_ms"] = latency_json(n.end_to_end, &n.end_to_end_max_ns);
    if (st.is_sink() && ring::load(n.from_capture_max_ns) != 0)
        j["from_capture_ms"] = latency_json(n.from_capture, &n.from_capture_max_ns);
    return j;
}

json dead_letters_json(const dead_letter_list& d) {
    json out = json::array();
    for (const dead_letter& l : d.newest)
        out.push_back({{"ring_sequence", l.ring_sequence},
                       {"stage", l.stage.empty() ? json() : json(l.stage)},
                       {"reason", l.reason.empty() ? "unknown" : l.reason}});
    return out;
}

json samples_json(const std::vector<f64>& samples) {
    return {{"count", samples.size()},
            {"p50", quantile(samples, 0.5)},
            {"p99", quantile(samples, 0.99)},
            {"max", quantile(samples, 1.0)}};
}

/// Returns the number of frames that have bypassed a stage. Each ring that the stage reads counts these
/// frames. If the block is damaged, the counts of the rings may differ; the result is the greatest count.
u64 passed_by(const shm::control_block& c, u32 stage) noexcept {
    u64 most = 0;
    if (stage >= std::min(c.stages, shm::max_stages)) return most;
    const shm::stage_block& b = c.stage[stage];
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] < shm::max_links && b.input_group[i] < shm::max_blocking)
            most = std::max(most, ring::load(c.link[b.input_link[i]].skipped[b.input_group[i]]));
    return most;
}

/// For a sink without a ledger, all claimed frames count as lost. Throws output_error.
telemetry::ledger_summary ledger_of(const run_setup& s, const std::string& stage, u64 end) {
    const std::string path = telemetry::ledger_path(s.directory, stage);
    if (const auto ledger = telemetry::ledger_reader::open(path)) return ledger->summarize(end);
    const auto claims = telemetry::frame_claims::load(path);
    telemetry::ledger_summary sum;
    sum.passed = claims.unclaimed_below(end);
    sum.lost = end - sum.passed;
    return sum;
}

}  // namespace

bool is_sent_durably(const std::string& directory, const std::string& stage, const std::string& run_id) {
    const json link = link_json(directory, stage, run_id);
    return link.is_object() && link.value("durable", false);
}

bool run_outcome::ended_early() const noexcept {
    return planned_end < ring::end_stopping && end < planned_end;
}

std::string run_outcome::early_text() const {
    if (!ended_early()) return "";
    const std::string by = !ended_by.empty() ? fmt::format("its source {} ended the stream", ended_by)
                           : !end_requested_by.empty() ? end_requested_by
                                                       : ending;
    return fmt::format("ended early, after {} of {} frames: {}", end - std::min(first, end),
                       planned_end - std::min(first, planned_end), by);
}

f64 run_outcome::frames_per_second() const noexcept {
    return seconds > 0 ? static_cast<f64>(end - std::min(first, end)) / seconds : 0.0;
}

f64 quantile(std::vector<f64> samples, f64 p) {
    if (samples.empty()) return 0;
    std::sort(samples.begin(), samples.end());
    const auto last = static_cast<f64>(samples.size() - 1);
    return samples[static_cast<std::size_t>(std::clamp(p * last + 0.5, 0.0, last))];
}

std::vector<sink_account> read_ledgers(const run_setup& s, const shm::control_block& c, u64 end) {
    std::vector<sink_account> out;
    for (u32 k = 0; k < s.stages.size(); ++k) {
        if (!s.stages[k].is_sink()) continue;
        sink_account a{s.stages[k].spec.name, not_counted(s, k)};
        a.every = s.stages[k].spec.every;
        if (s.stages[k].spec.skips()) a.passed_by = passed_by(c, k);
        if (counts_frames(s.stages[k])) {
            try {
                telemetry::ledger_summary sum = ledger_of(s, a.stage, end);
                if (a.counted())
                    a.sum = std::move(sum);
                else
                    a.passed_by = sum.passed;
                // an unreadable ledger is not a reason to stop, because the rest of the account and of the
                // report is still useful
            } catch (const output_error& e) {
                a.unreadable = e.what();
                a.not_counted = "its ledger can't be read";
            }
        }
        out.push_back(std::move(a));
    }
    return out;
}

damage damage_of(const std::vector<sink_account>& sinks, const shm::control_block& c) {
    damage d;
    for (const sink_account& s : sinks) {
        if (!s.counted()) continue;
        d.counted = true;
        d.lost += s.sum.lost;
        d.repeated += s.sum.repeated;
    }
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k)
        d.torn += ring::load(c.stage[k].counters.torn);
    return d;
}

dead_letter_list dead_letters_of(const std::vector<sink_account>& sinks, const death_account& deaths) {
    dead_letter_list out;
    std::map<u64, dead_letter> dead_letters;  // one frame may be a tombstone in several sinks
    const bool counted =
        std::any_of(sinks.begin(), sinks.end(), [](const sink_account& s) { return s.counted(); });
    for (const sink_account& s : sinks) {
        if (!s.counted()) continue;
        out.count = std::max(out.count, s.sum.tombstones);
        for (const u64 ring_sequence : s.sum.tombstone_sequences)
            dead_letters.try_emplace(ring_sequence, dead_letter{ring_sequence, "", ""});
    }
    for (const tombstone_frame& v : deaths.abandoned)
        if (!counted || dead_letters.contains(v.ring_sequence))
            dead_letters[v.ring_sequence] = {v.ring_sequence, v.stage, v.reason};
    if (!counted) out.count = deaths.abandoned_before + dead_letters.size();
    for (auto& [ring_sequence, entry] : dead_letters) out.newest.push_back(std::move(entry));
    return out;
}

std::string dead_letters_text(const dead_letter_list& d) {
    constexpr std::size_t listed = 3;
    if (d.count == 0) return "";
    std::string names;
    for (std::size_t k = 0; k < std::min(listed, d.newest.size()); ++k) {
        const dead_letter& l = d.newest[k];
        names += fmt::format("{}frame {}: {}", k == 0 ? "" : "; ", l.ring_sequence,
                             l.stage.empty() ? "the process is unknown" : l.stage + ", " + l.reason);
    }
    return fmt::format("{} given up ({}{})", d.count, names, d.count > listed ? "; ..." : "");
}

int exit_code_of(const run_outcome& o, const damage& d, const dead_letter_list& dead_letters,
                 u64 allowed) noexcept {
    if (o.exit_code != exit_code::ok) return o.exit_code;
    if (d.any()) return exit_code::stage_failed;
    return dead_letters.count > allowed ? exit_code::frames_abandoned : exit_code::ok;
}

std::string stream_end_text(const std::string& run, const std::string& source, u64 end) {
    return fmt::format("{}: the stream ended before frame {}, as its source {} reported", run, end, source);
}

std::string damage_text(const damage& d, const std::vector<sink_account>& sinks) {
    std::string out = d.counted ? fmt::format("lost {}, repeated {}, torn {}", d.lost, d.repeated, d.torn)
                                : fmt::format("lost and repeated frames were not counted, torn {}", d.torn);
    for (const sink_account& s : sinks)
        if (!s.counted())
            out += fmt::format("; {} not counted: {}{}", s.stage, s.not_counted,
                               s.passed_by ? fmt::format(": {} of them", *s.passed_by) : "");
        else if (s.sum.passed > 0 && s.every > 1)
            out += fmt::format("; {} frames have skipped {} (every = {})", s.sum.passed, s.stage, s.every);
        else if (s.sum.passed > 0)
            out += fmt::format("; {} frames have skipped {} while it had failed (optional = true)",
                               s.sum.passed, s.stage);
    return out;
}

namespace {

/// Names the data from which the sink's hashes are computed. If there are several names, a process of the
/// sink came from another build, and there is no image_hash.
json hash_name(const sink_account& a) {
    const std::vector<std::string>& names = a.sum.hash_names;
    const bool show_names = names.size() > 1 || (a.has_hash() && !names.empty());
    return show_names ? json(fmt::format("{}", fmt::join(names, ", "))) : json();
}

json sink_json(const run_setup& s, const sink_account& a) {
    if (!a.counted())
        return {{"stage", a.stage},     {"counted", false},
                {"why", a.not_counted}, {"skipped", a.passed_by ? json(*a.passed_by) : json()},
                {"lost", nullptr},      {"repeated", nullptr}};
    const telemetry::ledger_summary& sum = a.sum;
    const std::string kept =
        s.report_path.empty() || sum.records == 0 ? "" : ledger_copy_path(s.report_path, a.stage);
    json j{{"stage", a.stage},
           {"counted", true},
           {"ledger", kept.empty() ? json() : json(kept)},
           {"records", sum.records},
           {"folded", sum.folded},
           {"lost", sum.lost},
           {"repeated", sum.repeated},
           {"tombstones", sum.tombstones},
           {"unmarked", sum.unmarked},
           {"marked_by_supervisor", sum.marked_by_supervisor},
           {"image_hash", a.has_hash() ? json(fmt::format("{:016x}", sum.image_hash)) : json()},
           {"image_hash_of", hash_name(a)}};
    if (sum.passed > 0) j["skipped"] = sum.passed;
    return j;
}

json blamed_json(const run_setup& s, const std::vector<u32>& stages) {
    json names = json::array();
    for (const u32 k : stages)
        if (k < s.stages.size()) names.push_back(s.stages[k].spec.name);
    return names;
}

}  // namespace

json make_report(const report_input& in) {
    const run_setup& s = *in.setup;
    const std::string outputs = created_output_directory(s);
    const damage d = damage_of(*in.sinks, *in.control);
    const auto first =
        std::find_if(in.sinks->begin(), in.sinks->end(), [](const sink_account& a) { return a.has_hash(); });
    const dead_letter_list dead_letters = dead_letters_of(*in.sinks, *in.deaths);
    json r{{"pipeline", s.name},
           {"file", s.file},
           {"output_directory", outputs.empty() ? json() : json(outputs)},
           {"device", s.device_name},
           {"size", {s.width, s.height}},
           {"latency", word_of(latency_words, s.latency)},
           {"depth_reason", s.depth_reason.empty() ? json() : json(s.depth_reason)},
           {"ending", in.outcome.ending},
           {"ended_by", in.outcome.ended_by.empty() ? json() : json(in.outcome.ended_by)},
           {"exit_code", in.outcome.exit_code},
           {"first", in.outcome.first},
           {"frames", in.outcome.end},
           {"lost", d.counted ? json(d.lost) : json()},
           {"repeated", d.counted ? json(d.repeated) : json()},
           {"torn", d.torn},
           {"dead_letters", dead_letters_json(dead_letters)},
           {"dead_letter_count", dead_letters.count},
           {"allow_dead_letters", s.allow_dead_letters == ~u64{0} ? json(true) : json(s.allow_dead_letters)},
           {"restarts", in.deaths->restarts},
           {"deaths", in.deaths->deaths},
           {"rebuilds", in.outcome.rebuilds},
           {"taken_over", in.outcome.taken_over},
           {"stalls", in.outcome.repairs.stalls},
           {"damaged", in.outcome.repairs.damaged},
           {"words_repaired", in.outcome.repairs.words},
           {"frames_beyond_end", in.outcome.repairs.beyond_end},
           {"state_lost_at", in.outcome.repairs.state_lost_at},
           {"allow_state_loss", s.allow_state_loss},
           {"mps", !s.has_mps() ? json()
                                : json{{"domain_faults", in.deaths->domain_faults},
                                       {"abandoned", in.deaths->domain_abandoned},
                                       {"blamed", blamed_json(s, in.deaths->domain_blamed)},
                                       {"back_ms", samples_json(domains_back_ms(*in.recoveries))}}},
           {"ended_early", in.outcome.ended_early() ? json(in.outcome.early_text()) : json()},
           {"seconds", in.outcome.seconds},
           {"frames_per_second", in.outcome.frames_per_second()},
           {"image_hash",
            first != in.sinks->end() ? json(fmt::format("{:016x}", first->sum.image_hash)) : json()},
           {"image_hash_of", first != in.sinks->end() ? hash_name(*first)
                             : in.sinks->size() == 1  ? hash_name(in.sinks->front())
                                                      : json()},
           {"not_comparable", s.why_not_comparable().empty() ? json() : json(s.why_not_comparable())},
           {"command_line", in.outcome.command_line}};
    r["kills_at"] = run::ps_kills::of(in.deaths->kills_at);
    r["detection_ms"] = samples_json(detections_ms(*in.recoveries));
    r["fence_ms"] = samples_json(fences_ms(*in.recoveries));
    r["takeover_ms"] = samples_json(takeovers_ms(*in.recoveries, false));
    const takeover_parts parts = parts_of_takeovers_ms(*in.recoveries);
    r["takeover_parts_ms"] = {{"to_start", samples_json(parts.to_start)},
                              {"to_attach", samples_json(parts.to_attach)},
                              {"to_ready", samples_json(parts.to_ready)},
                              {"to_first_frame", samples_json(parts.to_frame)}};
    r["standby_takeover_ms"] = samples_json(takeovers_ms(*in.recoveries, true));
    r["standby_takeovers"] = in.deaths->promoted;
    // The numbers of deaths after which a fresh process had to be started although the stage has standbys, by
    // reason.
    r["standby_missed"] = {{"none", in.deaths->no_standby[static_cast<u8>(why_no_standby::none)]},
                           {"starting", in.deaths->no_standby[static_cast<u8>(why_no_standby::starting)]},
                           {"untried", in.deaths->no_standby[static_cast<u8>(why_no_standby::untried)]}};
    r["bottleneck"] = bottleneck_of(s, in.shares, nullptr);
    r["problems"] = in.problems;
    r["parameters"] = in.parameters;
    r["repairs"] = json::array();
    for (const repair_record& m : in.outcome.repairs.last)
        r["repairs"].push_back(
            {{"at_s", static_cast<f64>(m.at_ns) / 1e9},
             {"frame", m.frame},
             {"stalled", m.stalled},
             {"found", m.found},
             {"uncertain",
              m.uncertain.first < m.uncertain.end ? json{m.uncertain.first, m.uncertain.end - 1} : json()}});
    r["recoveries"] = recoveries_json(*in.recoveries);
    r["recoveries_dropped"] = in.recoveries_dropped;
    r["sinks"] = json::array();
    for (const sink_account& a : *in.sinks) r["sinks"].push_back(sink_json(s, a));
    r["memory"] = json::array();
    for (const memory_item& m : plan_memory(s)) {
        r["memory"].push_back({{"of", m.name}, {"kind", device::name_of(m.choice.kind)}, {"bytes", m.bytes}});
        if (!m.asset) r["memory"].back()["guard"] = m.guard.name();
    }
    r["block_guard"] = shm::has_protection_keys() ? "keys" : "pages";
    r["stages"] = json::array();
    for (u32 k = 0; k < s.stages.size(); ++k) r["stages"].push_back(stage_json(in, k));
    return r;
}

}  // namespace carousel::supervisor
