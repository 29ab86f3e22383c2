#include "ipc/place.hpp"

#include <fmt/format.h>

#include <fstream>

#include "core/errors.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::ipc {

std::string spaces_folder() { return shm::runtime_folder("carousel-spaces"); }

hold_place place_of(const std::string& name) {
    if (!shm::is_folder_name(name))
        throw config_error(
            fmt::format("\"{}\" can't be the name of a space: 1 to {} letters, digits, -, _ and inner dots",
                        name, shm::longest_folder_name));
    return {spaces_folder() + "/" + name};
}

void make_place_folder(const hold_place& p) {
    shm::make_private_folder(p.folder.substr(0, p.folder.rfind('/')));
    shm::make_private_folder(p.folder);
}

void write_record(const hold_place& p, const hold_record& r) {
    shm::write_whole_file(p.record(), fmt::format("{} {}\n", r.pid, r.id));
}

std::optional<hold_record> read_record(const hold_place& p) {
    std::ifstream in(p.record());
    hold_record r;
    if (in >> r.pid >> r.id && !r.id.empty()) return r;
    return std::nullopt;
}

}  // namespace carousel::ipc
