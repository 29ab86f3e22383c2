#pragma once
// The source that plays a recording (carousel-replay), bit for bit: planes, parameters, time.
//   file    the recording, relative to the pipeline file's folder
//   ring    whose frames, by the stage that wrote them [the only one]
//   first   position of the first frame of that ring that is played, from 0 [0]
//   count   how many; 0: to the end [0]
//   loop    begins again at `first` for ever; with count = 1 one frame for ever [false]
//   rate    of the recorded pace: 1 as it was, 2 twice as fast, 0 as fast as it goes, or by the pipeline's
//   fps [0]
// Frame n of the run is the recording's frame first + n: a function of n and of the file. A recording without
// an end (its recorder was killed) or with a damaged index is played by its units. A damaged frame is given
// up, with a message that names it, and keeps its place: the frames after it have the same numbers as without
// damage.

#include <memory>
#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/recording/ring_reader.hpp"

namespace carousel::stages {

class player : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    void wait_for_turn(u64 time_ns);

    std::string path_;
    recording about_;
    std::size_t ring_ = 0;  ///< of about_.rings
    u64 first_ = 0, count_ = 0;
    bool loop_ = false;
    f64 rate_ = 0;
    ring_reader frames_;
    u64 played_ = 0;  ///< how many of them, from first_ on
    std::vector<std::unique_ptr<device::mapping>> lanes_;
    u64 last_time_ns_ = 0, last_played_ns_ = 0;  ///< of the frame before, in the recording and here
};

}  // namespace carousel::stages
