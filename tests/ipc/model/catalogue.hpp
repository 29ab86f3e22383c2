#pragma once
// The set-ups that are explored, each with the expected result.

#include <string>
#include <vector>

#include "gate_model.hpp"
#include "pool_model.hpp"
#include "queue_model.hpp"
#include "repairer_model.hpp"
#include "semaphore_model.hpp"
#include "work_model.hpp"

namespace carousel::ipc_model {

template <class Setup>
struct one_search {
    const char* name;
    Setup what;
    const char* rule = "";  ///< what the search must find; "": nothing
};
template <class Setup>
using listed = std::vector<one_search<Setup>>;

/// The code as it is.
template <class Setup>
listed<Setup> sound();
/// Larger ones: minutes together.
template <class Setup>
listed<Setup> large();
/// One rule left out at a time.
template <class Setup>
listed<Setup> seeded();

template <>
listed<gate_setup> sound();
template <>
listed<gate_setup> large();
template <>
listed<gate_setup> seeded();
template <>
listed<repairer_setup> sound();
template <>
listed<repairer_setup> large();
template <>
listed<repairer_setup> seeded();
template <>
listed<semaphore_setup> sound();
template <>
listed<semaphore_setup> large();
template <>
listed<semaphore_setup> seeded();
template <>
listed<queue_setup> sound();
template <>
listed<queue_setup> large();
template <>
listed<queue_setup> seeded();
template <>
listed<work_setup> sound();
template <>
listed<work_setup> large();
template <>
listed<work_setup> seeded();
template <>
listed<pool_setup> sound();
template <>
listed<pool_setup> large();
template <>
listed<pool_setup> seeded();

}  // namespace carousel::ipc_model
