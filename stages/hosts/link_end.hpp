#pragma once
// What both ends of a link are made of: its settings, its token, what its frames are.

#include <string>

#include <carousel/stage.hpp>
#include "stages/hosts/link/token_file.hpp"
#include "stages/hosts/link_settings.hpp"

namespace carousel::hosts {

struct link_end {
    link_settings where;
    std::string stage;
    frame_format format;
    u64 bytes = 0;  ///< of a frame
    environment* env = nullptr;
    token_file token;

    /// In configure(). Throws settings_error.
    void read(const configuration& with, const frame_format& of_frames);
    /// In prepare(). Throws config_error: there are several instances, or no token.
    void prepare(environment& with);
    /// Where this stage keeps something in its run's runtime directory.
    [[nodiscard]] std::string file(const std::string& name) const;
    /// Has this run further stages that receive from other hosts? By what its supervisor has planned and
    /// those stages have said of themselves (pipeline.json). True where that can't be read.
    [[nodiscard]] bool is_one_of_several_receivers() const;
};

}  // namespace carousel::hosts
