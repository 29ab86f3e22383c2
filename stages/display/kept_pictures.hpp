#pragma once
// Keeps only the newest pictures of a run, for runs without an end that a person watches. After each picture
// is written, the pictures that are `keep` frames older are removed. Removes only pictures that this run has
// written: files that match the run's own pattern, made since the run's first display began (the time of a
// small file in the run's runtime directory). Pictures of other runs in the same folder are kept. What a
// crash leaves: a display that is killed between a picture and the removal delivers that frame again. Its
// successor scans the folder for written pictures, so that pictures left by its predecessors are removed with
// the next picture. Frames may arrive in any order, from several threads; a picture that is already too old
// is removed at once.

#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>

#include "stages/display/picture_name.hpp"

namespace carousel::stages {

class kept_pictures {
public:
    /// `note`: path of the small file, created if it is missing. Throws output_error.
    kept_pictures(picture_name names, std::filesystem::path folder, std::filesystem::path note, u64 keep);

    /// Called after each picture that was written, before its frame's commit.
    void wrote(u64 frame_number);
    /// Called after a frame without a picture, because the pictures before it become older all the same.
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
    u64 newest_ = 0;  ///< newest frame so far, including tombstones
    std::set<u64> existing_;
};

}  // namespace carousel::stages
