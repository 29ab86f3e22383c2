// The main function of each shipped stage: CMake names its header and its class.
#include CAROUSEL_STAGE_HEADER

int main(int argc, char** argv) { return carousel::stage_main<CAROUSEL_STAGE>(argc, argv); }
