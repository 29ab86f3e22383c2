#pragma once
// The newest pictures of a run and no others: for runs without an end beside somebody who watches. Each
// picture that is written sends those away that are `keep` frames older. Removed is only what this run has
// written: a file of the run's own pattern, made since the run's first display began (the time of a small
// file in the run's runtime directory). Pictures of other runs in the same folder stay. What a crash leaves:
// a display that is killed between a picture and the removal delivers that frame again. One that takes its
// place finds what it has written by looking into the folder, so that whatever its predecessors left goes
// with the next picture. Frames may come in any order, from several threads: one that is old already goes at
// once.

#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>

#include "stages/display/picture_name.hpp"

namespace carousel::stages {

class kept_pictures {
public:
    /// `note`: path of the small file, made when it isn't there. Throws output_error.
    kept_pictures(picture_name names, std::filesystem::path folder, std::filesystem::path note, u64 keep);

    /// Behind each picture that was written, before its frame's commit.
    void wrote(u64 frame_number);
    /// Behind a frame without a picture: those before it grow old all the same.
    void passed(u64 frame_number);

private:
    void scan_folder();
    void remove_oldest();
    [[nodiscard]] bool is_of_this_run(const std::filesystem::path& path) const noexcept;

    picture_name names_;
    std::filesystem::path folder_;
    u64 keep_;
    timespec begun_{};
    std::mutex mutex_;  ///< guards what follows
    bool scanned_ = false;
    u64 newest_ = 0;  ///< frame so far, void ones included
    std::set<u64> existing_;
};

}  // namespace carousel::stages
