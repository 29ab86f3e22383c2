#pragma once
// A pipeline as a drawing for Graphviz or Mermaid, from a pipeline file or from the `ps` reply of a running
// pipeline.

#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::supervisor {

struct graph_node {
    std::vector<std::string> lines;  ///< the first is the stage's name
    std::string state;               ///< "running", "failed", ...; "": unknown
};
struct graph_edge {
    std::size_t from = 0, to = 0;  ///< indices into drawing::nodes
    std::string ring;              ///< "fork", "fork.square"
    std::vector<std::string> lines;
    bool latest = false;
};
struct drawing {
    std::string name;
    std::vector<graph_node> nodes;
    std::vector<graph_edge> edges;
};

[[nodiscard]] drawing drawing_of(const run_setup& s);
/// `ps`: the supervisor's reply to "ps". Throws shm_error if the reply has no name or no links, which is
/// possible for the reply of another version. With a snapshot of the same run, the drawing includes states,
/// frames/s and the lag of each reader in frames.
[[nodiscard]] drawing drawing_of(const run::ps_answer& ps, const telemetry::snapshot* live);

[[nodiscard]] std::string dot_text(const drawing& d);
[[nodiscard]] std::string mermaid_text(const drawing& d);

}  // namespace carousel::supervisor
