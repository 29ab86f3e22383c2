#pragma once
// A sink: records a hash of the data that it received, so that runs can be compared, and writes the data into
// files on request. Settings: files, whether to write points-000012.xyz and so on into the run's output
// directory, runs/NAME-DATE [false].

#include <unistd.h>

#include <carousel/stage.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scan.hpp"

class scan_sink : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        const carousel::input_description& input =
            carousel::require_one_input(with, "points with intensities");
        carousel::require_format(input.format, scan_format(0), with.stage, input.stage);
        points_ = input.format.find("points")->shape[0];
        files_ = with.settings->flag("files", false);
        return {.device = carousel::runs_on::cpu};
    }

    // Several frames are in flight at once; each has a lane with its own memory.
    void prepare(carousel::environment& env) override {
        if (files_) folder_ = env.output_directory();  // the first call creates the folder
        for (carousel::u32 lane = 0; lane < env.in_flight(); ++lane)
            lanes_.push_back({env.context().allocate_host(points_ * 3 * sizeof(float)),
                              env.context().allocate_host(points_ * sizeof(carousel::u16))});
    }

    void process(carousel::frame& f) override {
        const buffers& to = lanes_[f.lane()];
        const auto points = f.input().bytes("points"), intensity = f.input().bytes("intensity");
        f.queue().copy(to.points->data(), points.data(), points.size());
        f.queue().copy(to.intensity->data(), intensity.data(), intensity.size());
    }

    // Called after the frame's completion, before its commit. After a crash it may be called again for the
    // same frame, in another process. It then repeats the same work; a file appears either complete or not at
    // all.
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(carousel::frame& f) override {
        const buffers& got = lanes_[f.lane()];
        f.set_hash(hash(*got.intensity, hash(*got.points, 0xcbf29ce484222325)));
        if (files_) write_file(f, got);
    }

private:
    struct buffers {
        std::unique_ptr<carousel::device::mapping> points, intensity;
    };

    /// FNV-1a of the memory's bytes, continuing from `value`.
    static carousel::u64 hash(const carousel::device::mapping& memory, carousel::u64 value) {
        for (const std::byte b : std::span(memory.host_data(), memory.bytes()))
            value = (value ^ static_cast<carousel::u64>(b)) * 0x100000001b3;
        return value;
    }

    [[nodiscard]] std::string text_of(const buffers& got) const {
        std::string text;
        char line[96];
        for (carousel::u64 k = 0; k < points_; ++k) {
            float at[3];
            carousel::u16 strength = 0;
            std::memcpy(at, got.points->host_data() + k * sizeof at, sizeof at);
            std::memcpy(&strength, got.intensity->host_data() + k * sizeof strength, sizeof strength);
            std::snprintf(line, sizeof line, "%g %g %g %u\n", at[0], at[1], at[2], unsigned{strength});
            text += line;
        }
        return text;
    }

    void write_file(carousel::frame& f, const buffers& got) const {
        char name[64];
        std::snprintf(name, sizeof name, "/points-%06llu.xyz",
                      static_cast<unsigned long long>(f.frame_number()));
        const std::string path = folder_ + name, unfinished = path + "." + std::to_string(::getpid());
        const std::string text = text_of(got);
        std::FILE* file = std::fopen(unfinished.c_str(), "w");
        bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
        written = (file == nullptr || std::fclose(file) == 0) && written;
        const bool owned = f.is_owned();  // if false, a successor has the frame, and the file that the
                                          // successor has written is kept
        if (written && owned && std::rename(unfinished.c_str(), path.c_str()) == 0) return;
        const int why = errno;
        std::remove(unfinished.c_str());
        // On a full disk the runner waits until there is room and calls finish() again.
        if (owned) carousel::throw_output_error(path, why, path + ": " + std::strerror(why));
    }

    carousel::u64 points_ = 0;
    bool files_ = false;
    std::string folder_;
    std::vector<buffers> lanes_;
};
