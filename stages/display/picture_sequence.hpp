#pragma once
// The pictures of a run as a sequence of files: how the files are named, and which of them are kept.

#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "core/types.hpp"
#include "stages/display/picture_file.hpp"

namespace carousel::stages {

// The file names of a picture sequence: "frame_%05d.png". The pattern comes from a user, so it is never
// passed to printf.

class picture_name {
public:
    /// Parses "…%d…" or "…%0Nd…" (N from 1 to 20; "%%" is a percent sign). Throws settings_error for `key`
    /// if the file name does not have exactly one such conversion, if the folder has one, or if the
    /// extension does not select a picture format (picture_file.hpp) that this build can write.
    picture_name(std::string key, const std::string& pattern);

    /// The file's path for one frame; relative patterns are resolved against `folder`.
    [[nodiscard]] std::filesystem::path of(u64 frame_number, const std::filesystem::path& folder) const;
    /// Returns the number of the frame that a file of that name contains; empty if the name does not belong
    /// to this sequence.
    [[nodiscard]] std::optional<u64> number_of(const std::string& file_name) const;
    [[nodiscard]] picture_format format() const noexcept { return format_; }
    /// The folder of the pictures.
    [[nodiscard]] std::filesystem::path parent(const std::filesystem::path& folder) const;

private:
    std::string before_, after_;  ///< the text before and after the number, in which "%%" is already replaced
                                  ///< by "%"
    picture_format format_ = picture_format::png;
    std::size_t digits_ = 1;  ///< the number is padded with zeros to this length
};

// Keeps only the newest pictures of a run. Meant for a run that does not end by itself, and whose pictures a
// person watches. After each picture is written, the pictures that are at least `keep` frames older than the
// newest frame are removed. Removes only pictures that this run has written: files that match the run's own
// pattern, made since the run's first display began (the time of a small file in the run's runtime
// directory). Pictures of other runs in the same folder are kept. What a crash leaves: a display that is
// killed between a picture and the removal delivers that frame again. The display's successor scans the
// folder for written pictures, so that pictures left by its predecessors are removed with the next picture.
// Frames may arrive in any order, from several threads; a picture that is already too old is removed at once.

class kept_pictures {
public:
    /// `note`: path of the small file, created if it is missing. Throws output_error.
    kept_pictures(picture_name names, std::filesystem::path folder, std::filesystem::path note, u64 keep);

    /// Called after each picture that was written, before its frame's commit.
    void wrote(u64 frame_number);
    /// Called after a frame that has no picture, because the earlier pictures also become older by such a
    /// frame.
    void passed(u64 frame_number);

private:
    void scan_folder();
    void remove_oldest();
    [[nodiscard]] bool is_of_this_run(const std::filesystem::path& path) const noexcept;

    picture_name names_;
    std::filesystem::path folder_;
    u64 keep_;
    timespec begun_{};
    std::mutex mutex_;  ///< guards the members below
    bool scanned_ = false;
    u64 newest_ = 0;  ///< number of the newest frame so far, including tombstone frames
    std::set<u64> existing_;
};

}  // namespace carousel::stages
