#pragma once
// `carousel record`: executes carousel-tape (stages/recording/tape_main.cpp).

namespace carousel::supervisor {

struct command;
extern const command record_command;

}  // namespace carousel::supervisor
