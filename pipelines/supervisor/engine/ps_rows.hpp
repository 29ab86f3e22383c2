#pragma once
// The contents of `carousel ps`.

#include <string>

#include "control/ps_message.hpp"

namespace carousel::supervisor {

class block_custodian;
class device_switch;
class memory_store;
class problems;
class progress;
class run_extensions;
class run_phase;
class stage_times;
struct process_table;
struct run_facts;
struct run_setup;

/// The data that the reply is made from.
struct ps_sources {
    const run_setup& setup;
    const std::string& run_id;
    const process_table& seats;
    const memory_store& memory;
    const block_custodian& block;
    const run_phase& phase;
    const progress& rates;
    const stage_times& times;
    const problems& degraded;
    const run_facts& facts;
    const run_extensions& extensions;
    const device_switch& devices;
};

[[nodiscard]] run::ps_answer ps_answer_of(const ps_sources& in);

}  // namespace carousel::supervisor
