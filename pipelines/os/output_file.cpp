#include "os/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/errors.hpp"
#include "core/whole_io.hpp"

namespace carousel::supervisor {

std::string output_file::part_path(const std::string& path, i32 pid) {
    return fmt::format("{}.{}.part", path, pid);
}

output_file::output_file(std::string path) : path_(std::move(path)), part_(part_path(path_, ::getpid())) {
    fd_.reset(::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd_)
        throw output_error(fmt::format("{} can't be written: {}; choose a file in a folder of yours", path_,
                                       errno_text(errno)));
}

output_file::~output_file() {
    if (fd_) ::unlink(part_.c_str());
}

void output_file::write(const std::string& text) {
    if (!write_whole(fd_.get(), text.data(), text.size()))
        throw output_error(fmt::format("writing {}: {}", path_, errno_text(errno)));
    if (::rename(part_.c_str(), path_.c_str()) != 0)
        throw output_error(fmt::format("writing {}: {}", path_, errno_text(errno)));
    fd_.reset();
}

}  // namespace carousel::supervisor
