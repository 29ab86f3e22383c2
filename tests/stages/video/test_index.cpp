// The index of a video, and the note of what a decoder was doing when it died.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "stages/video/decoder_note.hpp"
#include "stages/video/frame_index.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::stages::video;

namespace {

index_entry entry(i64 pts, bool key = false) { return {pts, pts - 2, static_cast<u64>(pts) * 7, key, false}; }

}  // namespace

TEST_CASE("an index is read again as it was written, and is complete when the end was reached") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.index").string();
    {
        frame_index index(path, 7);
        for (i64 k = 0; k < 5000; ++k) index.append(entry(k * 10, k % 50 == 0));
        CHECK_FALSE(index.total());
        index.complete();
    }
    const frame_index again(path, 7);
    CHECK(again.size() == 5000);
    CHECK(again.total() == 5000);
    CHECK(again[4321] == entry(43210));
    CHECK(again[4350] == entry(43500, true));
    CHECK(again.at_time(43210) == 4321);
    CHECK_FALSE(again.at_time(43211));
    CHECK(frame_index(path, 8).size() == 0);  // of another file
}

TEST_CASE("records that a stopped process writes of another file are not valid") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.index").string();
    frame_index stopped(path, 7);
    stopped.append(entry(0));
    frame_index successor(path, 8);
    stopped.append(entry(1));
    successor.append(entry(100));
    CHECK(frame_index(path, 8).size() == 1);
}

TEST_CASE("the first process records the content of the video for all its successors") {
    const scratch_folder folder;
    const std::string path = (folder.path / "video.content").string();
    CHECK(recorded_content(path, 7) == 7);
    CHECK(recorded_content(path, 8) == 7);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("an index ends before the first record that is not whole, and continues there") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.index").string();
    {
        frame_index index(path, 7);
        for (i64 k = 0; k < 100; ++k) index.append(entry(k));
    }
    const auto flip = [&](std::streamoff at) {
        std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
        f.seekp(at);
        f.put('\x55');
    };
    flip(64 + 32 * 60 + 5);
    {
        frame_index index(path, 7);
        CHECK(index.size() == 60);
        index.append(entry(60));
    }
    CHECK(frame_index(path, 7).size() == 100);
    std::filesystem::resize_file(path, 64 + 32 * 50 + 31);
    CHECK(frame_index(path, 7).size() == 50);
    flip(9);
    CHECK(frame_index(path, 7).size() == 0);
}

TEST_CASE("a decoder starts one key frame before the one from which its pictures are exact") {
    const scratch_folder folder;
    frame_index index((folder.path / "a.index").string(), 7);
    for (i64 k = 0; k < 1000; ++k) index.append(entry(k, k % 30 == 0));
    CHECK(index.starts_for(0).empty());
    CHECK(index.starts_for(60).empty());  // key frames 0 and 30 are below it: from the beginning
    const auto starts = index.starts_for(400);
    REQUIRE(starts.size() == 2);
    CHECK((starts[0].key == 360 && starts[0].exact == 390));
    CHECK((starts[1].key == 300 && starts[1].exact == 330));
    index.set_irregular();
    CHECK(index.starts_for(400).empty());
}

TEST_CASE("a successor knows the packet on which its predecessor died, until it has decoded that packet") {
    const scratch_folder folder;
    const std::string stem = (folder.path / "video").string();
    const packet_id first{10, 1000, 50}, second{20, 2000, 60};
    {
        decoder_note note(stem, 1);
        note.begin(decoder_step::decode, first, 5, false);
        note.end();
        note.begin(decoder_step::decode, second, 6, false);
    }
    {
        decoder_note note(stem, 2);
        REQUIRE(note.suspicion());
        CHECK((note.suspicion()->packet == second && note.suspicion()->frame == 6));
        CHECK(note.suspicion()->deaths == 1);
        note.begin(decoder_step::decode, first, 6, true);
        note.end();
        CHECK(note.suspicion());
        note.begin(decoder_step::decode, second, 6, false);
    }
    {
        decoder_note note(stem, 3);
        CHECK(note.suspicion()->deaths == 2);
        note.begin(decoder_step::decode, second, 6, false);
        note.end();
        CHECK_FALSE(note.suspicion());
    }
    CHECK_FALSE(decoder_note(stem, 4).suspicion());
}

TEST_CASE("a packet that is skipped is skipped by all successors") {
    const scratch_folder folder;
    const std::string stem = (folder.path / "video").string();
    const packet_id deadly{20, 2000, 60};
    { decoder_note(stem, 1).begin(decoder_step::decode, deadly, 6, false); }
    {
        decoder_note note(stem, 2);
        note.skip_suspect();
        CHECK(note.is_skipped(deadly));
        note.begin(decoder_step::read, deadly, 7, false);
    }
    for (u32 epoch = 3; epoch < 6; ++epoch) {
        decoder_note note(stem, epoch);
        CHECK(note.is_skipped(deadly));
        CHECK_FALSE(note.is_skipped({21, 2000, 60}));
        CHECK_FALSE(note.is_end(deadly));
        note.skip_suspect();
        note.begin(decoder_step::read, deadly, epoch + 5, false);
    }
    CHECK(decoder_note(stem, 6).is_end(deadly));  // after three frames
}
