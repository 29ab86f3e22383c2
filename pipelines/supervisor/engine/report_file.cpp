// The report's file, and the ledgers that are kept beside it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "core/errors.hpp"
#include "core/whole_io.hpp"
#include "supervisor/engine/report.hpp"
#include "telemetry/ledger_fold.hpp"

namespace carousel::supervisor {

using nlohmann::json;

std::string kept_ledger(const std::string& report_path, const std::string& stage) {
    std::filesystem::path p(report_path);
    return (p.parent_path() / (p.stem().string() + "-ledger-" + stage + ".bin")).string();
}

namespace {
[[noreturn]] void refuse_report(const std::string& path, int why) {
    throw output_error(fmt::format("the report can't be written to {}: {}; choose another --report FILE",
                                   path, errno_text(why)));
}
}  // namespace

void write_text_whole(const std::string& path, const std::string& text) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    shm::unique_fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) refuse_report(path, errno);
    if (!write_whole(fd.get(), text.data(), text.size())) {
        const int why = errno;
        ::unlink(temporary.c_str());
        refuse_report(path, why);
    }
    if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) refuse_report(path, errno);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
        const int why = errno;
        ::unlink(temporary.c_str());
        refuse_report(path, why);
    }
}

void check_report_path(const std::string& path) {
    if (path.empty()) return;
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) refuse_report(path, EISDIR);
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    const shm::unique_fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    const int why = errno;
    if (!fd) refuse_report(path, why);
    ::unlink(temporary.c_str());
}

void write_report(const std::string& path, const json& report, const run_setup& s,
                  const std::vector<sink_account>& sinks) {
    for (const sink_account& a : sinks) {
        if (!a.counted()) continue;
        const std::string to = kept_ledger(path, a.stage);
        try {
            telemetry::copy_ledger(telemetry::ledger_path(s.directory, a.stage), to);
        } catch (const output_error& e) {
            throw output_error(
                fmt::format("the ledger of {} can't be kept as {}: {}; choose another --report FILE", a.stage,
                            to, e.what()));
        }
    }
    write_text_whole(path, report.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace carousel::supervisor
