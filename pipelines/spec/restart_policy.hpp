#pragma once
// The conditions under which a stage that has ended is started again.

#include "core/types.hpp"
#include "spec/words.hpp"

namespace carousel::supervisor {

/// Restart policy of a stage in the pipeline file.
enum class restart_policy : u8 { always, on_failure, no };
/// The words that the file uses.
inline constexpr word_table<restart_policy, 3> restart_words{{{"always", restart_policy::always},
                                                              {"on-failure", restart_policy::on_failure},
                                                              {"no", restart_policy::no}}};

}  // namespace carousel::supervisor
