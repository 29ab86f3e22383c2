// A build without extras has no spaces.
#include "runs/spaces.hpp"

namespace carousel::supervisor {

spaces_report report_spaces(const std::string&) { return {}; }
std::vector<std::string> space_names() { return {}; }
bool is_space(const std::string&) { return false; }
std::string list_of_spaces() { return ""; }
std::optional<std::string> end_space(const std::string&, f64) { return std::nullopt; }
std::vector<leftover> dead_spaces() { return {}; }
std::string remove_dead_space(const std::string&) { return ""; }
std::shared_ptr<run_extension> space_of_run() { return nullptr; }

}  // namespace carousel::supervisor
