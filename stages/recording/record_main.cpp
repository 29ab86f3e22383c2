#include "stages/recording/recorder.hpp"
int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::recorder>(argc, argv); }
