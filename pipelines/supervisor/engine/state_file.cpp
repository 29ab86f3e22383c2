#include "supervisor/engine/state_file.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "shm/runtime_folder.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

using nlohmann::json;

u64 state_file::fingerprint() const {
    const run_facts& f = *facts_;
    u64 print = supervisor::fingerprint(*seats_) ^ static_cast<u64>(phase_->now()) << 40U ^ f.begun_ns ^
                f.finished_ns << 1U ^ f.rebuilds << 2U ^ static_cast<u64>(f.interrupts) << 50U ^
                static_cast<u64>(f.taken_over) << 56U ^ f.started_ns ^ block_->end() << 3U ^
                f.repairs.words << 40U ^ f.repairs.damaged << 44U ^ f.repairs.stalls << 36U ^
                parameters_->number() << 20U;
    extensions_->each([&](const run_extension& e) { print ^= e.fingerprint(); });
    return print;
}

bool state_file::is_due() const { return fingerprint() != saved_print_; }

void state_file::save() {
    saved_print_ = fingerprint();
    json j = supervisor::state_json(*seats_);
    j["parameters"] = parameters_->state(block_->published());
    json run = to_json(*facts_);
    run["end"] = block_->end();
    extensions_->each([&](const run_extension& e) { e.save(run); });
    j["run"] = std::move(run);
    try {
        shm::write_whole_file(setup_->directory + "/state.json",
                              j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    } catch (const error& e) {
        if (!failed_)
            seats_->log_line(fmt::format("warning: {}: a second supervisor would count from 0", e.what()));
        failed_ = true;
    }
}

json state_file::read() const { return read_json_file(setup_->directory + "/state.json"); }

}  // namespace carousel::supervisor
