#include "viewer/web/run_files.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "ledger/ledger.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::viewer::web {
namespace {

namespace fs = std::filesystem;
constexpr const char* note_prefix = "recording-";  // stages/recording/recorder.cpp

std::optional<telemetry::ledger_summary> summary_of(const std::string& directory, const sink_tail& sink) {
    try {
        if (const auto ledger = telemetry::ledger_reader::open(telemetry::ledger_path(directory, sink.stage)))
            return ledger->summarize(sink.tail);
    } catch (const std::exception&) {  // the supervisor reports an unreadable ledger
    }
    return std::nullopt;
}

std::map<std::string, u64> recordings_in(const std::string& directory) {
    std::map<std::string, u64> sizes;
    std::error_code failed;
    for (fs::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        std::string path;
        if (!name.starts_with(note_prefix) || !read_member(read_json_file(at->path().string()), "path", path))
            continue;
        std::error_code missing;
        const u64 bytes = fs::file_size(path, missing);
        if (!missing) sizes[name.substr(std::string(note_prefix).size())] = bytes;
    }
    return sizes;
}

}  // namespace

std::vector<sink_tail> sink_tails(const telemetry::snapshot& s) {
    std::vector<sink_tail> out;
    for (const telemetry::stage_view& st : s.stages)
        if (st.is_sink() && !st.inputs.empty() && st.inputs.front() < s.links.size())
            out.push_back({st.name, s.links[st.inputs.front()].tail});
    return out;
}

void run_files::read(const std::string& runtime_directory, const std::vector<sink_tail>& tails, u64 block) {
    const bool same_block = std::exchange(block_, block) == block;
    settings = read_stage_settings(runtime_directory);
    std::map<std::string, u64> found;
    for (const sink_tail& t : tails) {
        const std::optional<telemetry::ledger_summary> sum = summary_of(runtime_directory, t);
        if (!sum) continue;
        found[t.stage] = sum->lost;
        const auto before = unconfirmed_.find(t.stage);
        if (same_block && before != unconfirmed_.end())
            sinks[t.stage] = {std::min(before->second, sum->lost), sum->repeated};
    }
    unconfirmed_ = std::move(found);
    confirmed = confirmed || same_block;
    recorded_bytes = recordings_in(runtime_directory);
}

}  // namespace carousel::viewer::web
