// Package conf reads the configuration of Hadoop clients: core-site.xml and hdfs-site.xml, with XInclude, ${…}, final and renamed
// keys, and turns it into [Settings] for one nameservice.
//
// A configuration is data of an administrator, but its size and depth are bounded all the same. Errors name the file and the line,
// or the key, and are fs.ErrInvalid, fs.ErrNotExist or errors.ErrUnsupported.
package conf
