#include "os/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/errors.hpp"

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
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(fd_.get(), text.data() + at, text.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw output_error(fmt::format("writing {}: {}", path_, errno_text(errno)));
        at += static_cast<std::size_t>(n);
    }
    if (::rename(part_.c_str(), path_.c_str()) != 0)
        throw output_error(fmt::format("writing {}: {}", path_, errno_text(errno)));
    fd_.reset();
}

}  // namespace carousel::supervisor
