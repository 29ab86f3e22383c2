#include "supervisor/engine/run_facts.hpp"

namespace carousel::supervisor {

nlohmann::json to_json(const run_facts& f) {
    return {{"first", f.first},
            {"started_ns", f.started_ns},
            {"begun_ns", f.begun_ns},
            {"finished_ns", f.finished_ns},
            {"rebuilds", f.rebuilds},
            {"end_requested", f.end_requested},
            {"ended_by", f.ended_by},
            {"end_requested_by", f.end_requested_by},
            {"end_request_signal", f.end_request_signal},
            {"interrupts", f.interrupts},
            {"taken_over", f.taken_over},
            {"stalls", f.repairs.stalls},
            {"damaged", f.repairs.damaged},
            {"words_repaired", f.repairs.words},
            {"stream_ended_by", f.stream_ended_by},
            {"beyond_end", f.repairs.beyond_end},
            {"state_lost_at", f.repairs.state_lost_at},
            {"fallback", f.fallback}};
}

void restore(run_facts& f, saved_run& saved, u64 created_ns) {
    f.started_ns = created_ns;
    saved.read("first", f.first);
    saved.read("started_ns", f.started_ns);
    saved.read("begun_ns", f.begun_ns);
    saved.read("finished_ns", f.finished_ns);
    saved.read("rebuilds", f.rebuilds);
    saved.read("end_requested", f.end_requested);
    saved.read("ended_by", f.ended_by);
    saved.read("end_requested_by", f.end_requested_by);
    saved.read("end_request_signal", f.end_request_signal);
    saved.read("interrupts", f.interrupts);
    saved.read("taken_over", f.taken_over);
    saved.read("stalls", f.repairs.stalls);
    saved.read("damaged", f.repairs.damaged);
    saved.read("words_repaired", f.repairs.words);
    saved.read("beyond_end", f.repairs.beyond_end);
    saved.read("state_lost_at", f.repairs.state_lost_at);
    saved.read("fallback", f.fallback);
}

}  // namespace carousel::supervisor
