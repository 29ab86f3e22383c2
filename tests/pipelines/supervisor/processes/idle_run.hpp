#pragma once
// A run without processes: a process table over a control block.

#include <memory>

#include "core/clock.hpp"
#include "ring/topology.hpp"
#include "supervisor/processes/process_table.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

struct idle_run {
    scratch_folder folder;
    supervisor::run_setup setup;
    std::unique_ptr<shm::control_block> block = std::make_unique<shm::control_block>();
    supervisor::event_loop loop;
    supervisor::console out{-1, false, false};
    supervisor::memory_store memory;
    std::unique_ptr<supervisor::process_table> table;

    explicit idle_run(const char* name) {
        setup.name = name;
        setup.directory = folder.path.string();
    }
    supervisor::stage_setup& add_stage(const char* name) {
        setup.stages.emplace_back().spec.name = name;
        return setup.stages.back();
    }
    supervisor::stage_setup& add_source(const char* name) {
        supervisor::stage_setup& st = add_stage(name);
        st.format = {{"type", "t"}};
        st.slot_bytes = 512;
        return st;
    }
    /// To be called once all stages are added.
    void begin() {
        ring::initialise(*block, plan_of(setup));
        table = std::make_unique<supervisor::process_table>(setup, loop, out);
        table->attach_to(*block, memory);
    }
    void set(u32 stage, supervisor::seat_state state) const {
        table->seats[stage]->machine.resume(state, now_ns(), 0);
    }
    /// No process can be started from now on.
    void take_all_entries() const {
        for (shm::incarnation& e : block->entry)
            e.identity.store(ring::entry_word{1, 1, 0, ring::entry_state::live}.pack());
    }
};

}  // namespace carousel::test
