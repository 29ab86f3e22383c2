#include "run/liveness.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "ledger/ledger.hpp"
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;

bool is_port_lock(const std::string& name) { return name.starts_with("port-") && name.ends_with(".lock"); }

bool has_ports(const std::string& folder) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (is_port_lock(at->path().filename().string()) && shm::is_flocked(at->path().string())) return true;
    return false;
}

/// `block`: null if it can't be read.
orphaned_stages orphaned_stages_in(const record& r, const shm::control_block* block) {
    if (!is_of_here(r)) return {shm::has_joined(r.folder) || shm::segment::is_held(r.run_id)};
    const u32 count = block != nullptr ? telemetry::living_stages(*block) : 0;
    return {count > 0, count};
}

using nlohmann::json;
constexpr const char* moved_files[] = {"logs", "recoveries.jsonl", "state.json", "pipeline.json"};
constexpr u64 most_alone_bytes = u64{4} << 20U;

std::string utc_now() {
    const std::time_t now = ::time(nullptr);
    std::tm t{};
    gmtime_r(&now, &t);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    return text;
}

/// Returns, for each sink with a ledger, the deliveries that can be proved from the ledger's file alone.
json sinks_of(const std::string& run_folder, u64 first) {
    constexpr std::string_view head = "ledger-", ending = ".bin";
    json sinks = json::array();
    for (const fs::path& path : entries_of(run_folder)) {
        const std::string file = path.filename().string();
        if (!file.starts_with(head) || !file.ends_with(ending)) continue;
        json sink{{"stage", file.substr(head.size(), file.size() - head.size() - ending.size())}};
        try {
            if (const auto ledger = telemetry::ledger_reader::open(path.string())) {
                const telemetry::ledger_summary sum = ledger->summarize(ledger->size());
                sink["delivered"] = sum.records - std::min(sum.records, sum.unmarked);
                sink["first_missing"] = ledger->first_undelivered(first);
                sink["repeated"] = sum.repeated;
            }
        } catch (const std::exception& e) {
            sink["unreadable"] = e.what();
        }
        sinks.push_back(std::move(sink));
    }
    return sinks;
}

json stages_of(const shm::control_block& c) {
    json stages = json::array();
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k) {
        const shm::stage_block& s = c.stage[k];
        stages.push_back({{"name", std::string(s.name, ::strnlen(s.name, sizeof s.name))},
                          {"frames", ring::load(s.counters.frames)},
                          {"tombstones", ring::load(s.counters.tombstones)},
                          {"torn", ring::load(s.counters.torn)}});
    }
    return stages;
}

/// Each log has an older half (".1"), which is removed first.
void bound_logs(const fs::path& folder) {
    std::vector<fs::path> logs = entries_of(folder / "logs");
    std::error_code ignored;
    for (const fs::path& log : logs)
        if (log.extension() == ".alone" && fs::file_size(log, ignored) > most_alone_bytes)
            fs::resize_file(log, most_alone_bytes, ignored);
    std::stable_partition(logs.begin(), logs.end(), [](const fs::path& p) { return p.extension() == ".1"; });
    for (std::size_t k = 0; k < logs.size() && bytes_in(folder) > most_lost_bytes; ++k)
        fs::remove(logs[k], ignored);
}

void drop_oldest(const std::string& kept, const std::string& newest) {
    std::vector<std::pair<fs::file_time_type, fs::path>> all;
    std::error_code ignored;
    for (const fs::path& each : entries_of(kept))
        if (each != newest) all.emplace_back(fs::last_write_time(each, ignored), each);
    std::sort(all.begin(), all.end());
    for (std::size_t k = 0; k + most_lost_runs <= all.size(); ++k) fs::remove_all(all[k].second, ignored);
}

std::optional<shm::segment> block_of(const std::string& run_id) {
    try {
        return shm::segment::observe(run_id);
    } catch (const error&) {  // the block does not exist any more, or is of another version
        return std::nullopt;
    }
}

/// Files can be kept even if the disk is full, because moving them needs no space.
void write_account(const std::string& folder, const json& account) {
    try {
        shm::write_whole_file(folder + "/account.json",
                              account.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    } catch (const error& e) {
        log::warning("the account of a lost run can't be written: {}", e.what());
    }
}

std::string keep(const std::string& run_folder, const shm::control_block* block) {
    const auto record = read_record(run_folder);
    if (!record || !shm::is_folder_name(record->run_id)) return "";
    const std::optional<shm::segment> found = block == nullptr ? block_of(record->run_id) : std::nullopt;
    if (found) block = &found->block();
    const std::string kept = lost_runs_folder(fs::path(run_folder).parent_path().string());
    const std::string name = fs::path(run_folder).filename().string();
    std::string folder = fmt::format("{}/{}.{}", kept, name, record->run_id);
    shm::make_private_folder(kept);
    shm::make_private_folder(folder);
    std::error_code failed;
    if (!fs::exists(folder + "/account.json", failed)) write_account(folder, account_of(run_folder, block));
    for (const char* file : moved_files)
        if (fs::exists(fs::path(run_folder) / file, failed))
            fs::rename(fs::path(run_folder) / file, fs::path(folder) / file, failed);
    bound_logs(folder);
    drop_oldest(kept, folder);
    return folder;
}

}  // namespace

bool has_members(const std::string& folder) { return shm::has_joined(folder) || has_ports(folder); }

orphaned_stages orphaned_stages_of(const record& r) {
    try {
        return orphaned_stages_in(r, &shm::segment::observe(r.run_id).block());
    } catch (const error&) {  // there is no such block here, or it is of another version
        return orphaned_stages_in(r, nullptr);
    }
}

// A stage of an older build holds no lock, so only its entry shows that it is alive.
liveness liveness_of(const record& r, bool lock_is_ours) {
    if (is_alive(r, lock_is_ours)) return liveness::led;
    const bool any = has_members(r.folder) || shm::segment::is_held(r.run_id) || orphaned_stages_of(r).any;
    return any ? liveness::alone : liveness::over;
}

std::vector<record> watchable_runs() {
    std::vector<record> runs = recorded_runs();
    std::erase_if(runs, [](const record& r) { return !is_alive(r) && !orphaned_stages_of(r).any; });
    return runs;
}

liveness_report update_liveness(record& r, const shm::control_block& block) {
    if (const std::optional<int> code = telemetry::end_of(block))
        return {liveness::over, 0, fmt::format("exit code {}", *code)};
    std::optional<record> present = read_record(r.folder);
    const bool replaced = present && present->run_id != r.run_id;
    if (present && !replaced) r = std::move(*present);  // possibly of another supervisor
    if (!replaced && is_alive(r)) return {};
    const orphaned_stages stages = orphaned_stages_in(r, &block);
    // Since is_alive() was called, the supervisor may have recorded the run's end and exited.
    if (const std::optional<int> code = telemetry::end_of(block))
        return {liveness::over, 0, fmt::format("exit code {}", *code)};
    if (replaced) return {liveness::over, 0, "a new run has replaced it"};
    if (stages.any) return {liveness::alone, stages.count, ""};
    return {liveness::over, 0, "its supervisor was killed, and none of its stages is left"};
}

std::string alone_text(u32 stages) {
    if (stages == 0) return "no supervisor, stages continue";
    return fmt::format("no supervisor, {} {}", stages, stages == 1 ? "stage continues" : "stages continue");
}

std::optional<shm::segment> recreated_block(const record& r, const shm::control_block& watched) noexcept try {
    shm::segment present = shm::segment::observe(r.run_id);
    if (!telemetry::is_recreated(watched, present.block())) return std::nullopt;
    return present;
} catch (const error&) {
    return std::nullopt;
}

std::string recreated_text(const record& r) { return r.name + " restarts with new memory"; }

json account_of(const std::string& run_folder, const shm::control_block* block) {
    const auto record = read_record(run_folder);
    const json state = read_json_file(run_folder + "/state.json");
    const json run = state.is_object() ? state.value("run", json::object()) : json::object();
    const auto number = [&run](const char* key, u64 fallback) {
        return run.is_object() && run.contains(key) && run[key].is_number_unsigned() ? run[key].get<u64>()
                                                                                     : fallback;
    };
    const u64 first = number("first", 0), end = number("end", ring::end_unknown);
    json account{
        {"name", record ? json(record->name) : json()},
        {"run_id", record ? json(record->run_id) : json()},
        {"file", record ? json(record->file) : json()},
        {"supervisor_pid", record ? json(record->supervisor.pid) : json()},
        {"lost_at", utc_now()},
        {"silent_s", nullptr},
        {"first_frame", first},
        {"frames_planned", end < ring::end_stopping ? json(end) : json()},
        {"sinks", sinks_of(run_folder, first)},
        {"stages", json::array()},
        {"why", fmt::format("its supervisor (pid {}) died, and no other supervisor took the run over",
                            record ? record->supervisor.pid : 0)}};
    if (block == nullptr) return account;
    account["stages"] = stages_of(*block);
    const u64 beat = ring::load(block->supervisor_heartbeat_ns), now = now_ns();
    if (beat != 0 && beat < now) account["silent_s"] = static_cast<f64>(now - beat) / 1e9;
    return account;
}

std::string keep_lost_run(const std::string& run_folder, const shm::control_block* block) noexcept {
    try {
        return keep(run_folder, block);
    } catch (const std::exception& e) {
        log::warning("the data of the lost run in {} can't be saved: {}", run_folder, e.what());
        return "";
    }
}

std::string lost_runs_folder(const std::string& runs) { return runs + "-lost"; }

std::vector<lost_run> lost_runs(const std::string& name) {
    std::vector<std::pair<fs::file_time_type, lost_run>> found;
    std::error_code failed;
    for (const fs::path& folder : entries_of(lost_runs_folder(runs_folder()))) {
        const std::string file = folder.filename().string();
        const std::size_t dot = file.rfind('.');
        if (dot == std::string::npos || (!name.empty() && file.substr(0, dot) != name)) continue;
        json account = read_json_file((folder / "account.json").string());
        if (!account.is_object()) account = nullptr;
        found.emplace_back(
            fs::last_write_time(folder, failed),
            lost_run{folder.string(), file.substr(0, dot), file.substr(dot + 1), std::move(account)});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<lost_run> out;
    out.reserve(found.size());
    for (auto& each : found) out.push_back(std::move(each.second));
    return out;
}

std::string describe(const lost_run& r) {
    try {
        const json& a = r.account;
        std::string frames;
        for (const json& sink : a.at("sinks"))
            if (sink.contains("delivered"))
                frames += fmt::format("{}{} delivered {}{} frames", frames.empty() ? "" : ", ",
                                      sink.at("stage").get<std::string>(), sink.at("delivered").get<u64>(),
                                      a.at("frames_planned").is_number()
                                          ? fmt::format(" of {}", a.at("frames_planned").get<u64>())
                                          : "");
        return fmt::format("{}: lost at {}; {}; {}; kept in {}", r.name, a.at("lost_at").get<std::string>(),
                           frames.empty() ? "no sink delivered a frame" : frames,
                           a.at("why").get<std::string>(), r.folder);
    } catch (const json::exception&) {
        return fmt::format("{}: lost; its account can't be read; kept in {}", r.name, r.folder);
    }
}

}  // namespace carousel::run
