// Package kerberos keeps a process logged in to Kerberos for as long as it runs.
//
//	session, err := kerberos.Login(ctx, kerberos.Options{Principal: "etl@EXAMPLE.COM", Keytab: "etl.keytab"})
//	…
//	err = session.AffirmLogin(ctx) // before each new connection
//	ticket, key, err := session.Client().GetServiceTicket("nn/nn1.example.com")
//
// A login comes from a keytab, a password or a credential cache that another program keeps. AffirmLogin costs next to nothing
// while the ticket is fresh. When four fifths of its life are over, or when the keytab or the cache has changed, it renews the
// ticket or logs in anew, once for all callers at a time. No goroutine waits for that: without AffirmLogin nothing happens,
// unless the caller runs Session.Run.
//
// # Configuration
//
// krb5.conf is that of MIT Kerberos, by path or by value, with include and includedir. Where it says nothing, the KDC is asked
// by TCP alone, and the encryption types are AES with SHA-1 and with SHA-2. Nothing is taken from or kept in global state, so
// that any number of principals and realms can be used side by side.
//
// Credential caches are files (FILE:). KEYRING:, KCM:, DIR:, MEMORY: and API: are refused by name.
//
// # Errors
//
// What is wrong with the options or the configuration is fs.ErrInvalid. What goes wrong in a login is one of the sentinels of
// this package, and the message says what can be done. Keys and passwords are in no message.
package kerberos
