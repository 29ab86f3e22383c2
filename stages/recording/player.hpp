#pragma once
// The source that plays a recording (carousel-replay), bit for bit: planes, parameters, time; or the pictures
// of an MCAP file of another program (raw_image.hpp).
//   file    the recording, relative to the pipeline file's folder
//   ring    the ring to play, named by the stage that wrote it [the only one]
//   pixel_format  "rgba8" converts pictures of other formats; "": as recorded [""]
//   first   position of the first frame of that ring that is played, from 0 [0]
//   count   number of frames; 0: to the end [0]
//   loop    restarts at `first` indefinitely; with count = 1 repeats one frame [false]
//   rate    relative to the recorded pace: 1 as recorded, 2 twice as fast, 0 as fast as possible or at the
//           pipeline's fps [0]
// Frame n of the run is the recording's frame first + n (with loop, n modulo the number of frames): a
// function of n and of the file. A recording without an end (because its recorder was killed), or with a
// damaged index, is played unit by unit. A damaged frame is abandoned, with a message that names it, and
// keeps its place, so that the frames after it have the same numbers as without damage.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "frame/image_format.hpp"
#include "stages/recording/recording.hpp"
#include "stages/sdk/recorded_pace.hpp"

namespace carousel::stages {

class player : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    [[nodiscard]] frame_format output_format(bool as_rgba8);
    std::span<const std::byte> parameters_of(const frame& f, const frame_facts& recorded);

    std::string path_;
    recording about_;
    std::size_t ring_ = 0;  ///< index into about_.rings
    u64 first_ = 0, count_ = 0;
    bool loop_ = false;
    recorded_pace pace_;
    ring_reader frames_;
    u64 played_ = 0;  ///< number of frames that are played, beginning with frame first_
    std::vector<std::unique_ptr<device::mapping>> lanes_;
    std::optional<ring::image_description>
        converted_;                      ///< the recorded pictures; empty: they are not converted
    std::vector<std::byte> recorded_;    ///< a slot of the recorded format, to be converted
    std::vector<std::byte> parameters_;  ///< of the frame that is made
};

}  // namespace carousel::stages
