#pragma once
// A pipeline as a drawing for Graphviz or Mermaid. From a file that was read, or from what a running pipeline
// says of itself.

#include <string>
#include <vector>

#include "run/ps_message.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::supervisor {

struct graph_node {
    std::vector<std::string> lines;  ///< the first is the stage's name
    std::string state;               ///< "running", "failed", ...; "": not known
};
struct graph_edge {
    std::size_t from = 0, to = 0;  ///< nodes
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
/// `ps`: the supervisor's answer to "ps". Throws shm_error when it is of a version that does not tell its
/// links. With a snapshot of the same run: states, frames/s and how many frames each reader is behind.
[[nodiscard]] drawing drawing_of(const run::ps_answer& ps, const telemetry::snapshot* live);

[[nodiscard]] std::string dot_text(const drawing& d);
[[nodiscard]] std::string mermaid_text(const drawing& d);

/// What `ps` says of the links of a run.
[[nodiscard]] std::vector<run::ps_link> links_of(const run_setup& s);

}  // namespace carousel::supervisor
