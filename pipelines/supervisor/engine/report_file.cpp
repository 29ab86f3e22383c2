// The report's file, and the ledgers that are kept next to it.
#include <fmt/format.h>

#include <filesystem>

#include "core/errors.hpp"
#include "core/output_file.hpp"
#include "ledger/ledger_fold.hpp"
#include "supervisor/engine/report.hpp"

namespace carousel::supervisor {

using nlohmann::json;

std::string ledger_copy_path(const std::string& report_path, const std::string& stage) {
    const std::optional<output_target> to = find_output(report_path);
    if (to && !to->is_file) return "";
    const std::filesystem::path p(to ? to->path : report_path);
    return (p.parent_path() / (p.stem().string() + "-ledger-" + stage + ".bin")).string();
}

output_file open_report(const std::string& path) {
    return output_file(path, "the report", "choose another --report FILE");
}

void check_report_path(const std::string& path) {
    if (!path.empty()) (void)open_report(path);
}

void write_report(const std::string& path, const json& report, const run_setup& s,
                  const std::vector<sink_account>& sinks) {
    std::string failed;  // a ledger that cannot be copied does not prevent the report
    for (const sink_account& a : sinks) {
        const std::string to = a.counted() ? ledger_copy_path(path, a.stage) : "";
        if (to.empty()) continue;
        try {
            telemetry::copy_ledger(telemetry::ledger_path(s.directory, a.stage), to);
        } catch (const output_error& e) {
            failed = fmt::format("the ledger of {} can't be kept as {}: {}; choose another --report FILE",
                                 a.stage, to, e.what());
        }
    }
    open_report(path).write(report.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    if (!failed.empty()) throw output_error(failed);
}

}  // namespace carousel::supervisor
