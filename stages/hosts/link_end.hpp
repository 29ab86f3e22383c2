#pragma once
// Common part of both ends of a link: settings, token and format of the frames.

#include <string>

#include <carousel/stage.hpp>
#include "stages/hosts/link/token_file.hpp"
#include "stages/hosts/link_settings.hpp"

namespace carousel::hosts {

struct link_end {
    link_settings where;
    std::string stage;
    frame_format format;
    u64 bytes = 0;  ///< per frame
    environment* env = nullptr;
    token_file token;

    /// For configure(). Throws settings_error.
    void read(const configuration& with, const frame_format& of_frames);
    /// For prepare(). Throws config_error if the stage has several instances, or if there is no token.
    void prepare(environment& with);
    /// Returns the path of a file of this stage in its run's runtime directory.
    [[nodiscard]] std::string file(const std::string& name) const;
    /// True if this run has further stages that receive from other hosts, according to the supervisor's plan
    /// and the stages' own descriptions (pipeline.json). Also true if that cannot be read.
    [[nodiscard]] bool is_one_of_several_receivers() const;
};

}  // namespace carousel::hosts
