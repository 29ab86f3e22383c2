#include "stages/recording/player.hpp"
int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::player>(argc, argv); }
