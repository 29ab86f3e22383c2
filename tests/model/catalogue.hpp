#pragma once
// The set-ups that are checked, each with its expected result.

#include <string_view>

#include "search.hpp"

namespace carousel::model {

enum class effort : u8 { everyday, lengthy };

struct entry {
    std::string name;  ///< a sentence
    setup what;
    failure expected;  ///< `holds`: the protocol as written
    effort cost = effort::everyday;
};

/// The protocol as written, in every set-up.
std::vector<entry> holding_entries();
/// One clause left out, or one bug seeded, at a time.
std::vector<entry> failing_entries();
/// The number of buffers that the protocol needs.
std::vector<entry> sizing_entries();
/// Stages with two outputs, and forks whose branches join again.
std::vector<entry> output_entries();
/// Several stages: reading stages, joins, sinks, the end of the stream, frames that kill.
std::vector<entry> pipeline_entries();
/// Words with a flipped bit.
std::vector<entry> damage_entries();

const std::vector<entry>& catalogue();
const entry* find_entry(std::string_view name);

}  // namespace carousel::model
